/**
 * Interface to a payment service, so that another provider is one file. Its notifications carry only that something has changed: the
 * current state is then requested. Amounts are handled by the service alone.
 */

/** Its ends, RFC 3339. */
export interface Period {
  from: string;
  to: string;
}

/** As it is there now. */
export interface Subscription {
  subscription_id: string;
  /** ended: grants the paid periods and no more. pending: the same, and it starts, or continues, once it is paid. */
  status: "active" | "past_due" | "ended" | "pending";
  /** RFC 3339. */
  period_end: string;
  cancels_at_end: boolean;
  /** Paid periods, the newest first. */
  paid: readonly Period[];
}

/** A user's payment process. */
export interface Checkout {
  checkout_id: string;
  /** URL to send the browser to; null once the checkout is over. */
  url: string | null;
  /** The organization that the checkout was started for. */
  org_id: string | null;
  is_paid: boolean;
  customer_id: string | null;
}

/** Notification of the service that something has changed. */
export interface ProviderEvent {
  event_id: string;
  customer_id: string | null;
}

export interface NewCheckout {
  org_id: string;
  customer_id: string;
  /** Page to show after payment; {checkout_id} stands for the checkout. */
  success_url: string;
  back_url: string;
  /** Idempotency key: a repeated name returns the same checkout. */
  once: string;
}

/** Each throws billing_failed if the service cannot be reached, or `stop` was called in the meantime. */
export interface Provider {
  /** Creates the customer that pays for an organization; a repeated request soon after returns the same customer. */
  newCustomer(orgId: string): Promise<string>;
  /** Null if the customer does not exist, for example after a change of the service's account. */
  checkout(request: NewCheckout): Promise<Checkout | null>;
  /** Null if absent. */
  getCheckout(checkoutId: string): Promise<Checkout | null>;
  /** Expires an open checkout, so that it can no longer be paid. A finished one is unchanged. */
  endCheckout(checkoutId: string): Promise<void>;
  /** URL of the service's page for cards and invoices. */
  portal(customerId: string, backUrl: string): Promise<string>;
  /** All subscriptions that ever existed, the most relevant first. */
  subscriptions(customerId: string): Promise<Subscription[]>;
  cancel(subscriptionId: string): Promise<void>;
  /** Null if the service did not sign the event, or signed it too long ago. */
  readEvent(body: string, signature: string): Promise<ProviderEvent | null>;
  /** Aborts requests in progress, and sends no more. */
  stop(): void;
}

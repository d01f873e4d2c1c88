/**
 * Owns what is asked of a payment service, so that another one is a file. What it tells by itself is only that something has changed:
 * what is true is asked for, and amounts are its own business.
 */

/** Its ends, RFC 3339. */
export interface Period {
  from: string;
  to: string;
}

/** As it is there now. */
export interface Subscription {
  subscription_id: string;
  /** ended: it gives what was paid, and no more. pending: the same, and it begins, or goes on, once it is paid. */
  status: "active" | "past_due" | "ended" | "pending";
  /** RFC 3339. */
  period_end: string;
  cancels_at_end: boolean;
  /** Those that were paid, the newest first. */
  paid: readonly Period[];
}

/** Somebody's way through paying. */
export interface Checkout {
  checkout_id: string;
  /** Where the browser goes; null once it is over. */
  url: string | null;
  /** For whom it was begun. */
  org_id: string | null;
  is_paid: boolean;
  customer_id: string | null;
}

/** That something has changed, as the service tells it. */
export interface ProviderEvent {
  event_id: string;
  customer_id: string | null;
}

export interface NewCheckout {
  org_id: string;
  customer_id: string;
  /** The page for who has paid; {checkout_id} stands for the checkout. */
  success_url: string;
  back_url: string;
  /** The same again for the same name. */
  once: string;
}

/** Each throws billing_failed where the service cannot be asked, or `stop` was called meanwhile. */
export interface Provider {
  /** Who pays for an organization; the same one when it is asked for again soon. */
  newCustomer(orgId: string): Promise<string>;
  /** Null: the customer is not there, as after a change of the service's account. */
  checkout(asked: NewCheckout): Promise<Checkout | null>;
  /** Null: there is none. */
  getCheckout(checkoutId: string): Promise<Checkout | null>;
  /** Nobody pays by it from now on; one that is over stays as it is. */
  endCheckout(checkoutId: string): Promise<void>;
  /** Where cards and invoices are seen to. */
  portal(customerId: string, backUrl: string): Promise<string>;
  /** All that there ever were, the one that matters first. */
  subscriptions(customerId: string): Promise<Subscription[]>;
  cancel(subscriptionId: string): Promise<void>;
  /** Null: it was not signed by the service, or too long ago. */
  readEvent(body: string, signature: string): Promise<ProviderEvent | null>;
  /** Ends what it is asked now, and asks nothing more. */
  stop(): void;
}

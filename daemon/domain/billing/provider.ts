/**
 * Owns what is asked of a payment service, so that another one is a file. What it tells by itself is only that something has changed:
 * what is true is asked for, and amounts are its own business.
 */

/** As it is there now. */
export interface Subscription {
  subscription_id: string;
  /** ended: it gives nothing after its period. pending: it was never paid. */
  status: "active" | "past_due" | "ended" | "pending";
  /** RFC 3339. */
  period_end: string;
  cancels_at_end: boolean;
  /** When each period began that was paid, the newest first. */
  paid_periods: readonly string[];
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
  checkout_id: string | null;
}

export interface NewCheckout {
  org_id: string;
  /** Null: it has paid nothing yet. */
  customer_id: string | null;
  /** The page for who has paid; {checkout_id} stands for the checkout. */
  success_url: string;
  back_url: string;
  /** The same again for the same name. */
  once: string;
}

/** Each throws billing_failed where the service cannot be asked. */
export interface Provider {
  checkout(asked: NewCheckout): Promise<Checkout>;
  /** Null: there is none. */
  getCheckout(checkoutId: string): Promise<Checkout | null>;
  /** Where cards and invoices are seen to. */
  portal(customerId: string, backUrl: string): Promise<string>;
  /** The one that matters; null: there is none. */
  subscription(customerId: string): Promise<Subscription | null>;
  cancel(subscriptionId: string): Promise<void>;
  /** Null: it was not signed by the service, or too long ago. */
  readEvent(body: string, signature: string): Promise<ProviderEvent | null>;
}

/** Configuration of the payment service. */
import { type Config, ConfigError } from "../../core/config/config.ts";
import { secretIn } from "../../core/config/secret-file.ts";

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

export interface BillingPlan {
  secret_key: string;
  webhook_secret: string;
  price: string;
  /** Null: the usual one. */
  api_url: URL | null;
  /** Credits granted for each paid period. */
  monthly_credits: number;
}

/** Null if nothing is sold. Throws ConfigError. */
export function planBilling(config: Config): BillingPlan | null {
  if (config["billing.provider"] === "none") return null;
  if (!config["web.enabled"]) throw new ConfigError('billing.provider = "stripe" needs web.enabled = true');
  const text = config["billing.stripe.api_url"];
  const api_url = text === "" ? null : URL.parse(text);
  const isSafe = api_url?.protocol === "https:" || (api_url?.protocol === "http:" && LOOPBACK.test(api_url.hostname));
  if (text !== "" && !isSafe) {
    throw new ConfigError(`billing.stripe.api_url = ${JSON.stringify(text)}: must be an https:// URL`);
  }
  const price = config["billing.stripe.price"];
  if (price === "") throw new ConfigError("billing.stripe.price is missing: billing.provider needs it");
  return {
    secret_key: need(config, "billing.stripe.secret_key_file"),
    webhook_secret: need(config, "billing.stripe.webhook_secret_file"),
    price,
    api_url,
    monthly_credits: config["billing.monthly_credits"],
  };
}

function need(config: Config, key: Parameters<typeof secretIn>[1]): string {
  const secret = secretIn(config, key);
  if (secret === null) throw new ConfigError(`${key} is missing: billing.provider needs it`);
  return secret;
}

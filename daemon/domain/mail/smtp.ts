/** SMTP client: hands one e-mail to the mail server, or throws the reason. */
import { createTransport } from "nodemailer";
import type { MailPlan } from "./plan.ts";
import type { Email } from "./templates.ts";

/** Timeout for the connection, for the greeting, and for idle time in between. */
const TIMEOUT_MS = 15_000;
const REFUSED_FROM = 500;

/** Why the server did not accept an e-mail. `isFinal`: a retry would fail too. */
export class MailError extends Error {
  override name = "MailError";
  readonly isFinal: boolean;

  constructor(message: string, isFinal: boolean) {
    super(message);
    this.isFinal = isFinal;
  }
}

/** Throws MailError. */
export async function sendMail(plan: MailPlan, to: string, { subject, text }: Email): Promise<void> {
  const transport = createTransport({
    host: plan.host,
    port: plan.port,
    secure: plan.tls === "implicit",
    requireTLS: plan.tls === "starttls",
    ignoreTLS: plan.tls === "off",
    ...(plan.user === "" ? {} : { auth: { user: plan.user, pass: plan.password } }),
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    dnsTimeout: TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    // An object, so that nothing in the address is parsed as several addresses.
    const recipient = { name: "", address: to };
    const headers = { "Auto-Submitted": "auto-generated" };
    await transport.sendMail({ from: plan.from, to: recipient, subject, text, headers });
  } catch (error) {
    const { code, responseCode = 0, message } = error as { code?: string; responseCode?: number; message: string };
    const isFinal = code === "EENVELOPE" && responseCode >= REFUSED_FROM;
    throw new MailError(message.split("\n")[0]?.slice(0, 300) ?? "", isFinal);
  } finally {
    transport.close();
  }
}

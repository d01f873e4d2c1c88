/** Configuration of sending mail. */
import { type Config, ConfigError } from "../../core/config/config.ts";
import { secretIn } from "../../core/config/secret-file.ts";

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;
const ADDRESS = /^(?:[^<>@\r\n"]{0,100}<[^\s@<>"]{1,64}@[^\s@<>"]{1,189}>|[^\s@<>"]{1,64}@[^\s@<>"]{1,189})$/;

export interface MailPlan {
  host: string;
  port: number;
  tls: "starttls" | "implicit" | "off";
  user: string;
  password: string;
  from: string;
}

/** Null if no mail is sent. Throws ConfigError. */
export function planMail(config: Config): MailPlan | null {
  const { "smtp.host": host, "smtp.tls": tls, "smtp.from": from } = config;
  if (host === "") return null;
  if (tls === "off" && !LOOPBACK.test(host)) {
    throw new ConfigError(
      `smtp.tls = "off" is only for a server on this host: e-mails contain sign-in links, and ${host} is another host`,
    );
  }
  if (from === "") throw new ConfigError("smtp.from is missing: smtp.host needs a sender address");
  if (!ADDRESS.test(from)) {
    throw new ConfigError(`smtp.from = ${JSON.stringify(from)}: must be an address, as "roomd <roomd@example.org>"`);
  }
  const usual = { starttls: 587, implicit: 465, off: 25 }[tls];
  const password = secretIn(config, "smtp.password_file") ?? "";
  return { host, port: config["smtp.port"] || usual, tls, user: config["smtp.user"], password, from };
}

/**
 * Configuration of the HTTP listener: address, TLS mode and certificate. Creating a certificate is in tls-self-signed.ts, watching for a
 * new one in tls-watch.ts, serving it in ../listener.ts.
 */
import { isIP } from "node:net";
import { type Certificate, readPair } from "../../core/config/certificate.ts";
import { type Config, ConfigError } from "../../core/config/config.ts";
import { parseListen, WILDCARDS } from "../../core/config/listen.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Range } from "../../domain/egress/addresses.ts";
import type { ServeTls } from "../listener.ts";
import { trustedProxies } from "./client-address.ts";

/** Of TLS 1.2 only AEAD suites with forward secrecy (RFC 9325, 4.2). */
const TLS_1_2_CIPHERS = ["ECDSA", "RSA"]
  .flatMap((key) =>
    ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"].map((suite) => `ECDHE-${key}-${suite}`),
  )
  .join(":");

/** TLS options for clients. */
export function tlsOf({ cert, key }: Certificate): ServeTls {
  return { cert, key, ciphers: TLS_1_2_CIPHERS };
}

export interface ListenPlan {
  /** Address or name to listen on, IPv6 without brackets. */
  hostname: string;
  port: number;
  tls: "off" | "files" | "self-signed";
  /** URL of the service for clients on this host, without a trailing slash; http.base_url if set. */
  url: string;
  /** Below it each exposed port has its own host name, with a port if that is not 443; null: not configured. */
  ports_domain: string | null;
  /** Proxies with a trusted X-Forwarded-For. */
  trusted_proxies: readonly Range[];
}

/** Throws ConfigError if http.listen cannot be parsed or would carry keys unencrypted to other hosts. */
export function planListen(config: Config): ListenPlan {
  const { hostname, port } = parseListen("http.listen", config["http.listen"], "127.0.0.1:8080");
  const tls = tlsMode(config);
  if (tls === "off" && !isLoopback(hostname) && !config["http.insecure"]) {
    throw new ConfigError(
      `http.listen = ${JSON.stringify(config["http.listen"])} can be reached from other hosts and has no TLS: ` +
        `set tls.cert and tls.key, or tls.mode = "self-signed", or http.insecure = true to send API keys in the clear`,
    );
  }
  const host = WILDCARDS.has(hostname) ? "localhost" : isIP(hostname) === 6 ? `[${hostname}]` : hostname;
  const own = `${tls === "off" ? "http" : "https"}://${host}:${port}`;
  const url = baseUrl(config)?.href.replace(/\/+$/, "") ?? own;
  const trusted_proxies = trustedProxies(config["http.trusted_proxies"]);
  return { hostname, port, tls, url, ports_domain: portsDomain(config), trusted_proxies };
}

/** The certificate to serve; null without TLS. Throws ConfigError that names the file and its error. */
export async function loadCertificate(config: Config, paths: Pick<Paths, "tls">): Promise<Certificate | null> {
  const { tls, hostname, ports_domain } = planListen(config);
  if (tls === "off") return null;
  if (tls === "files") return readPair(config["tls.cert"], config["tls.key"]);
  // Its library is loaded only if it is used.
  const { loadSelfSigned } = await import("./tls-self-signed.ts");
  const hosts = WILDCARDS.has(hostname) ? [] : [hostname];
  const base = baseUrl(config)?.hostname.replace(/^\[|\]$/g, "");
  const domain = ports_domain?.replace(/:\d+$/, "");
  const names = [...hosts, ...(base ? [base] : []), ...(domain ? [`*.${domain}`] : [])];
  return loadSelfSigned(paths.tls, names);
}

function tlsMode(config: Config): ListenPlan["tls"] {
  const { "tls.mode": mode, "tls.cert": cert, "tls.key": key } = config;
  if (mode === "self-signed") {
    if (cert === "" && key === "") return mode;
    throw new ConfigError('tls.mode = "self-signed" and tls.cert or tls.key exclude each other: remove one of them');
  }
  if (cert !== "" && key !== "") return "files";
  if (mode === "files" || cert !== "" || key !== "") {
    throw new ConfigError(`${cert === "" ? "tls.cert" : "tls.key"} is missing: TLS needs both tls.cert and tls.key`);
  }
  return "off";
}

/** Whether only processes of the host can reach the address. */
export function isLoopback(hostname: string): boolean {
  if (isIP(hostname) === 4) return hostname.startsWith("127.");
  return hostname === "localhost" || hostname === "::1";
}

function baseUrl(config: Config): URL | null {
  const text = config["http.base_url"];
  if (text === "") return null;
  const url = URL.parse(text);
  if (url && (url.protocol === "http:" || url.protocol === "https:")) return url;
  throw new ConfigError(`http.base_url = ${JSON.stringify(text)}: must be a URL such as "https://rooms.example.org"`);
}

function portsDomain(config: Config): string | null {
  const text = config["ports.domain"].toLowerCase();
  if (text === "") return null;
  // No wildcard certificate is valid below a name without a dot.
  if (/^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(:\d{1,5})?$/.test(text)) return text;
  throw new ConfigError(
    `ports.domain = ${JSON.stringify(text)}: must be a name such as "ports.example.org", without "*." and "https://"`,
  );
}

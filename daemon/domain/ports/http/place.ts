/** The target of a request: by the label in the path or in the host, and its spelling for client and server. */
import { PATH_PREFIX, type PortUrls } from "../record.ts";

export interface PortAddress {
  label: string;
  /** path: all ports and the API share one origin. host: the port has a separate origin. */
  mode: "path" | "host";
  /** Prefix before the server's own paths, without a slash at its end: `/p/{label}`, or empty. */
  prefix: string;
  /** The server's own path, starting with a slash. */
  path: string;
  /** Scheme and host in the client's request. */
  scheme: "http" | "https";
  host: string;
}

/** Null for requests to the API. `path` is that of the URL, its dots resolved. */
export function placeOf(host: string | null, path: string, urls: PortUrls): PortAddress | null {
  if (urls.domain === null && !path.startsWith(PATH_PREFIX)) return null;
  const base = new URL(urls.base_url);
  const label = labelOfHost(host, base, urls.domain);
  if (label !== null) {
    return { label, mode: "host", prefix: "", path, scheme: "https", host: host?.toLowerCase() ?? "" };
  }
  if (!path.startsWith(PATH_PREFIX)) return null;
  const at = path.indexOf("/", PATH_PREFIX.length);
  const named = path.slice(PATH_PREFIX.length, at === -1 ? undefined : at);
  const scheme = base.protocol === "https:" ? "https" : "http";
  const prefix = PATH_PREFIX + named;
  return { label: named, mode: "path", prefix, path: at === -1 ? "" : path.slice(at), scheme, host: host ?? base.host };
}

/** `label` of `label.domain`, on any port; null for the API's own host. */
function labelOfHost(host: string | null, base: URL, domain: string | null): string | null {
  if (host === null || domain === null || host.toLowerCase() === base.host) return null;
  const name = host.toLowerCase().replace(/:\d+$/, "").replace(/\.$/, "");
  const below = `.${domain.replace(/:\d+$/, "")}`;
  if (!name.endsWith(below)) return null;
  const label = name.slice(0, -below.length);
  return label.includes(".") ? null : label;
}

/** An exposed port as the API shows it. */
import type { PortRecord } from "../../../shared/api/ports.ts";
import type { ShownPort } from "../../../shared/api/shown-port.ts";
import type { PortRow } from "./table.ts";
import type { PortTokens } from "./tokens.ts";

/** How clients reach the service. */
export interface PortUrls {
  /** Without a slash at its end. */
  base_url: string;
  /** Below it each port has a host of its own; null without one. */
  domain: string | null;
}

export const PATH_PREFIX = "/p/";

export function toShownPort({ port, visibility, label, created_at, expires_at }: PortRow, urls: PortUrls): ShownPort {
  const path_url = `${urls.base_url}${PATH_PREFIX}${label}/`;
  const url = urls.domain === null ? path_url : `https://${label}.${urls.domain}`;
  return { port, visibility, url, path_url, created_at, expires_at };
}

export function toPortRecord(row: PortRow, urls: PortUrls, tokens: PortTokens, listening: boolean): PortRecord {
  const token = row.visibility === "private" ? tokens.of(row.label) : null;
  return { ...toShownPort(row, urls), token, listening };
}

/** An exposed port in API responses. */
import type { PortRecord } from "../../../shared/api/ports.ts";
import type { PortTraffic, ShownPort } from "../../../shared/api/shown-port.ts";
import type { PortRow } from "./table.ts";
import type { PortTokens } from "./tokens.ts";
import type { Traffic } from "./traffic.ts";

/** How clients reach the service. */
export interface PortUrls {
  /** Without a trailing slash. */
  base_url: string;
  /** Domain below which each port has a host of its own; null without one. */
  domain: string | null;
}

/** Dependencies for making a record. */
interface Shows {
  urls(): PortUrls;
  tokens: PortTokens;
  traffic: Traffic;
}

export const PATH_PREFIX = "/p/";

export function toShownPort(row: PortRow, urls: PortUrls, traffic: PortTraffic): ShownPort {
  const { port, visibility, label, created_at, expires_at } = row;
  const path_url = `${urls.base_url}${PATH_PREFIX}${label}/`;
  const url = urls.domain === null ? path_url : `https://${label}.${urls.domain}`;
  return { port, visibility, url, path_url, created_at, expires_at, traffic };
}

export function toPortRecord({ urls, tokens, traffic }: Shows, row: PortRow, listening: boolean): PortRecord {
  const token = row.visibility === "private" ? tokens.of(row.label) : null;
  return { ...toShownPort(row, urls(), traffic.of(row)), token, listening };
}

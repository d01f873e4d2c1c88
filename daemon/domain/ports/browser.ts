/** The call that returns the address of a sandbox's browser: its port, exposed, and the path that the browser itself reports. */

import { BROWSER_PORT, BROWSER_SECONDS, browserGet } from "../../../shared/api/browser.ts";
import { PORT_TOKEN_HEADER, sandboxExposePort } from "../../../shared/api/ports.ts";
import { actorOf, type Bound, bind, type KeyCall } from "../../core/call/operation.ts";
import { after, now, timeoutSignal } from "../../core/clock.ts";
import { parseJson } from "../../core/json.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { BadMessage } from "../../wire/http1/bad-message.ts";
import { appendAudit } from "../audit/index.ts";
import type { PortTarget } from "./deps.ts";
import { expose, requireExposable } from "./expose.ts";
import { type ExchangeRequest, type ExchangeResponse, exchange, headOf } from "./http/exchange.ts";
import { innerHost } from "./http/headers.ts";
import type { PortParts } from "./parts.ts";
import { toPortRecord } from "./record.ts";
import { movePortEnd } from "./store.ts";
import type { PortRow } from "./table.ts";

const ASKED: ExchangeRequest = {
  method: "GET",
  target: "/json/version",
  headers: [
    ["host", innerHost(BROWSER_PORT)],
    ["connection", "close"],
  ],
  body: null,
  length: null,
};
/** Its response is a few hundred bytes; a longer one arrives as a stream, and is not a browser's. */
const ANSWER_MS = 30_000;
/** An exposure with more than this left is not extended, so that frequent calls seldom write. */
const ENOUGH_SECONDS = BROWSER_SECONDS * 0.8;
/** The same in every clone of a template: it is not a secret. */
const PATH = /^\/devtools\/browser\/[\w-]{1,128}$/;

export function makeBrowser(parts: PortParts): Bound {
  return bind(browserGet, {
    find: (call, params) => parts.sandboxes.find(call, params),
    run: async (call, _input, target) => {
      requireExposable(target);
      // Before all else: without a browser nothing is exposed.
      const path = await browserPath(parts, target);
      const request = { port: BROWSER_PORT, expires_in_seconds: BROWSER_SECONDS };
      const record = (queries: Queries, exposed: PortRow) => recordExposed(queries, call, exposed);
      const again = (queries: Queries, known: PortRow, requested: PortRow) => {
        if (!isShort(known, requested)) return known;
        const moved = { ...known, expires_at: requested.expires_at };
        movePortEnd(queries, moved.label, moved.expires_at);
        record(queries, moved);
        return moved;
      };
      const { row } = await expose(parts, call.caller, target, request, again, record);
      call.audit.details = detailsOf(row);
      const { url, token, expires_at } = toPortRecord(parts, row, true);
      const cdp_url = url.replace(/^http/, "ws").replace(/\/$/, "") + path;
      return {
        outcome: "ok",
        body: { cdp_url, headers: token === null ? {} : { [PORT_TOKEN_HEADER]: token }, expires_at },
      };
    },
  });
}

/** Whether this call exposed the port, as far as its row shows, and the exposure ends sooner than it could. */
function isShort({ visibility, wish, expires_at }: PortRow, requested: PortRow): boolean {
  if (visibility !== "private" || wish !== null || expires_at === null || requested.expires_at === null) return false;
  return expires_at < after(now(), ENOUGH_SECONDS) && expires_at < requested.expires_at;
}

/** Changes are audited whether or not reads are, and before the response. */
function recordExposed(queries: Queries, { caller, source, request_id, ip, audit }: KeyCall, row: PortRow): void {
  appendAudit(queries, {
    ...{ event: sandboxExposePort.audit, outcome: "success", at: now(), org_id: caller.org_id, actor: actorOf(caller) },
    ...{ source, request_id, ip, ...audit, details: detailsOf(row) },
  });
}

const detailsOf = ({ port, visibility, expires_at }: PortRow) => ({ port, visibility, expires_at });

/** Throws port_not_listening if there is no browser, and errors of opening a connection. */
async function browserPath({ connections }: PortParts, { row: { sandbox_id, org_id } }: PortTarget): Promise<string> {
  const goal = { sandbox_id, org_id, port: BROWSER_PORT, label: null };
  const port = await connections.open(goal, headOf(ASKED)).catch((error: unknown) => {
    throw error instanceof ServiceError && error.code === "port_not_listening" ? noBrowser() : error;
  });
  try {
    return pathIn(await exchange(port, ASKED, timeoutSignal(ANSWER_MS)));
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw port.cutBecause === null
      ? noBrowser()
      : new ServiceError("guest_unreachable", { detail: `The connection was closed: ${port.cutBecause}.` });
  } finally {
    port.close();
  }
}

function pathIn({ head, body }: ExchangeResponse): string {
  if (head.status !== 200 || !(body instanceof Uint8Array)) throw new BadMessage("it is not a browser");
  const versionInfo: unknown = parseJson(body);
  const url = Object(versionInfo).webSocketDebuggerUrl;
  const path = typeof url === "string" ? new URL(url).pathname : "";
  if (!PATH.test(path)) throw new BadMessage("it is not a browser");
  return path;
}

function noBrowser(): ServiceError {
  return new ServiceError("port_not_listening", {
    detail: `No browser listens on port ${BROWSER_PORT} of this sandbox.`,
    details: { port: BROWSER_PORT },
    hint: "Sandboxes of the template browser have one. In another start Chromium with --remote-debugging-port=9222.",
  });
}

/** Owns the call that says where a sandbox's browser is: its port, exposed, and the path that the browser itself names. */
import { BROWSER_PORT, BROWSER_SECONDS, browserGet } from "../../../shared/api/browser.ts";
import { PORT_TOKEN_HEADER } from "../../../shared/api/ports.ts";
import { type Bound, bind } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import { expose } from "./expose.ts";
import { BadAnswer } from "./http/byte-reader.ts";
import { type Answered, type Asked, exchange, headOf } from "./http/exchange.ts";
import { innerHost } from "./http/headers.ts";
import type { PortParts } from "./parts.ts";
import { toPortRecord } from "./record.ts";
import { findPort } from "./store.ts";
import type { PortRow } from "./table.ts";

const ASKED: Asked = {
  method: "GET",
  target: "/json/version",
  headers: [
    ["host", innerHost(BROWSER_PORT)],
    ["connection", "close"],
  ],
  body: null,
  length: null,
};
/** What it says is a few hundred bytes; longer answers come as a stream, and are no browser's. */
const ANSWER_MS = 30_000;
/** The same in every clone of a template: it keeps nobody out. */
const PATH = /^\/devtools\/browser\/[\w-]{1,128}$/;

export function makeBrowser(parts: PortParts): Bound {
  return bind(browserGet, {
    find: (call, params) => parts.sandboxes.find(call, params),
    run: async (call, _input, target) => {
      const known = findPort(parts.database.queries, target.row.sandbox_id, BROWSER_PORT);
      const wanted = { port: BROWSER_PORT, expires_in_seconds: BROWSER_SECONDS };
      const row = known ?? (await expose(parts, call.caller, target, wanted)).row;
      call.audit.details = { port: row.port, visibility: row.visibility, expires_at: row.expires_at };
      const path = await browserPath(parts, row);
      const { url, token, expires_at } = toPortRecord(parts, row, true);
      const cdp_url = url.replace(/^http/, "ws").replace(/\/$/, "") + path;
      return {
        outcome: "ok",
        body: { cdp_url, headers: token === null ? {} : { [PORT_TOKEN_HEADER]: token }, expires_at },
      };
    },
  });
}

/** Throws port_not_listening where there is no browser, and what opening a connection throws. */
async function browserPath({ connections }: PortParts, row: PortRow): Promise<string> {
  const port = await connections.open(row, headOf(ASKED)).catch((error: unknown) => {
    throw error instanceof ServiceError && error.code === "port_not_listening" ? noBrowser() : error;
  });
  try {
    return pathIn(await exchange(port, ASKED, AbortSignal.timeout(ANSWER_MS)));
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw port.cutBecause === null
      ? noBrowser()
      : new ServiceError("guest_unreachable", { detail: `The connection was cut: ${port.cutBecause}.` });
  } finally {
    port.close();
  }
}

function pathIn({ head, body }: Answered): string {
  if (head.status !== 200 || !(body instanceof Uint8Array)) throw new BadAnswer("it is no browser");
  const said: unknown = JSON.parse(new TextDecoder().decode(body));
  const url = Object(said).webSocketDebuggerUrl;
  const path = typeof url === "string" ? new URL(url).pathname : "";
  if (!PATH.test(path)) throw new BadAnswer("it is no browser");
  return path;
}

function noBrowser(): ServiceError {
  return new ServiceError("port_not_listening", {
    detail: `No browser listens on port ${BROWSER_PORT} of this sandbox.`,
    details: { port: BROWSER_PORT },
    hint: "Sandboxes of the template browser have one. In another start Chromium with --remote-debugging-port=9222.",
  });
}

/** Interface of a sandbox's browser: the URL for Playwright and Puppeteer. */
import { Type } from "@sinclair/typebox";
import { fields, NONE, nullable, operation, timestamp } from "./contract.ts";
import { sandboxPath, WAKING_ERRORS } from "./sandboxes.ts";

/** Chromium's port in the guest, as packaging/guest-image/browser.toml starts it. */
export const BROWSER_PORT = 9222;
/** How long the port stays exposed, unless it was exposed already. */
export const BROWSER_SECONDS = 3600;

export const browserGet = operation({
  name: "browser_get",
  extension: "browser",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/browser",
  summary: "Get the URL of a sandbox's browser, for Playwright and Puppeteer",
  description: `Chromium's DevTools protocol, over a WebSocket. Port ${BROWSER_PORT} is exposed as a private port for an hour, if it is not exposed already; a repeated call extends this to an hour from then on. If no browser listens, nothing is exposed. Anyone with URL and headers can control this browser, and read the files that it can read. Sandboxes of the template browser have one running.`,
  access: "ports:write",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: fields({
    cdp_url: Type.String({
      description: "For chromium.connectOverCDP of Playwright, or browserWSEndpoint of Puppeteer.",
    }),
    headers: Type.Record(Type.String(), Type.String(), { description: "To send when connecting." }),
    expires_at: nullable(timestamp),
  }),
  outcomes: { ok: 200 },
  errors: [
    "room_not_found",
    "sandbox_not_found",
    "room_destroying",
    "invalid_state",
    "too_many_ports",
    "port_not_listening",
    "guest_unreachable",
    "rate_limited",
    ...WAKING_ERRORS,
  ],
  secretOutput: true,
  audit: "port.browser_read",
});

/** Handshake, as a WebSocket client, with a server in a guest or on another host. No extensions are requested, so none is passed on. */
import { createHash, randomBytes } from "node:crypto";
import { BadMessage } from "../../../wire/http1/bad-message.ts";
import type { Header } from "../../../wire/http1/headers.ts";
import { hasSecret } from "../http/secrets.ts";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export interface Offer {
  headers: [string, string][];
  /** The subprotocol that the server accepted, or null. Throws BadMessage if the response does not match this offer. */
  accepted(head: { headers: Header[] }): string | null;
}

/** `protocols` is the client's Sec-WebSocket-Protocol; keys and tokens of the service in it are forwarded only to hosts of the service. */
export function offer(protocols: string | null, toWhom: "guest" | "host" = "guest"): Offer {
  const key = randomBytes(16).toString("base64");
  const expected = createHash("sha1")
    .update(key + GUID)
    .digest("base64");
  const offered = (protocols ?? "")
    .split(",")
    .flatMap((each) => (toWhom === "guest" && hasSecret(each) ? [] : each.trim() || []));
  return {
    headers: [
      ["connection", "Upgrade"],
      ["upgrade", "websocket"],
      ["sec-websocket-version", "13"],
      ["sec-websocket-key", key],
      ...(offered.length === 0 ? [] : ([["sec-websocket-protocol", offered.join(", ")]] as [string, string][])),
    ],
    accepted: ({ headers }) => {
      const value = (name: string) => headers.find(([each]) => each === name)?.[1] ?? null;
      if (value("upgrade")?.toLowerCase() !== "websocket" || value("sec-websocket-accept") !== expected) {
        throw new BadMessage("a response that does not match the handshake");
      }
      if (value("sec-websocket-extensions")) throw new BadMessage("an extension that was not offered");
      const taken = value("sec-websocket-protocol");
      if (taken !== null && !offered.includes(taken)) throw new BadMessage("a subprotocol that was not offered");
      return taken;
    },
  };
}

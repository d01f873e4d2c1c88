/** Interface of a verb and a transport for a two-way conversation, such as one by WebSocket. */
import { ServiceError } from "../service-error.ts";

/** The client, as seen by the verb. */
export interface Peer {
  say(text: string): void;
  /** Sends bytes or a text; resolves once more can be sent. */
  send(message: Uint8Array | string): Promise<void>;
  /** Closes the session with a code and a short reason. */
  close(code: number, reason: string): void;
}

/** The verb's side. The transport starts it once, then passes on incoming messages, and reports when the client has gone. */
export interface DuplexSession {
  /** Maximum size of one message from the client; a larger message closes the session. */
  readonly mostBytes: number;
  start(client: Peer): void;
  hear(text: string): void;
  take(bytes: Uint8Array): void;
  /** The client has gone, with a code and a reason if it gave them, or never came. */
  left(code?: number, reason?: string): void;
}

/** Throws validation_failed if the request is no WebSocket handshake. */
export function requireWebSocket({ websocket }: { websocket: boolean }): void {
  if (websocket) return;
  const message = "This needs a WebSocket handshake: Upgrade: websocket.";
  throw new ServiceError("validation_failed", {
    detail: message,
    errors: [{ field: "Upgrade", code: "required", message }],
  });
}

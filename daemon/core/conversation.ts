/** Owns what a verb and a door know of a two-way conversation, such as one by WebSocket. */
import { ServiceError } from "./service-error.ts";

/** The client, as the door shows it. */
export interface Talker {
  say(text: string): void;
  /** Bytes, or a text; resolves once there is room for more. */
  send(message: Uint8Array | string): Promise<void>;
  /** Ends the conversation with a code and a reason of a few words. */
  close(code: number, reason: string): void;
}

/** The verb's side. The door starts it once, then hands over what comes, and says when the client is gone. */
export interface Conversation {
  /** Most bytes of one message from the client; a larger one ends the conversation. */
  readonly mostBytes: number;
  start(client: Talker): void;
  hear(text: string): void;
  take(bytes: Uint8Array): void;
  /** The client has gone, with a code and a reason where it gave them, or never came. */
  left(code?: number, reason?: string): void;
}

/** Throws validation_failed where a request asks for no conversation. */
export function requireWebSocket({ websocket }: { websocket: boolean }): void {
  if (websocket) return;
  const message = "This needs a WebSocket handshake: Upgrade: websocket.";
  throw new ServiceError("validation_failed", {
    detail: message,
    errors: [{ field: "Upgrade", code: "required", message }],
  });
}

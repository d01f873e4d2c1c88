/**
 * Typing at a terminal with a ticket: the WebSocket that it opens. The ticket is stored nowhere else.
 *
 *     opening ──▶ open ──▶ closed, with a reason
 */
import type {
  TERMINAL_CLOSE,
  TERMINAL_PROTOCOL,
  TerminalClose,
  TOKEN_PROTOCOL_PREFIX,
} from "../../../../shared/api/terminals.ts";
import { pathOf } from "../../data/api.ts";

const PROTOCOL = "roomd.terminal" satisfies typeof TERMINAL_PROTOCOL;
const PREFIX = "roomd.token." satisfies typeof TOKEN_PROTOCOL_PREFIX;
type Code = (typeof TERMINAL_CLOSE)[TerminalClose];
const WHY: Record<Code, string> = {
  1001: "The service is stopping: watching resumes as soon as it is back.",
  4000: "The service received a malformed message.",
  4001: "Another client took over.",
  4002: "The key that made the ticket was revoked or has expired.",
  4003: "The sandbox is no longer running.",
  4004: "The guest's connection was lost.",
  4005: "The guest did not read the input fast enough.",
};

export interface Typing {
  send(bytes: Uint8Array<ArrayBuffer>): void;
  /** Resizes the terminal itself, for all its viewers. */
  resize(size: { rows: number; cols: number }): void;
  leave(): void;
}

/** `path` of the terminal in the API; `over` is called once with the reason of the end: null if the user left. */
export function typeBy(
  { path, ticket, since, takesOver }: { path: string; ticket: string; since: number; takesOver: boolean },
  { opened, over }: { opened(): void; over(why: string | null): void },
): Typing {
  const url = new URL(pathOf(`${path}/ws`, { since, takeover: takesOver || null }), location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(url, [PROTOCOL, PREFIX + ticket]);
  let isOpen = false;
  let isLeft = false;
  socket.addEventListener("open", () => {
    isOpen = true;
    opened();
  });
  socket.addEventListener("close", ({ code }) => {
    if (isLeft) over(null);
    else if (!isOpen) over(NOT_LET);
    else over(code === 1000 ? "The terminal has ended." : (WHY[code as Code] ?? "The connection was lost."));
  });
  const send = (data: string | Uint8Array<ArrayBuffer>) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(data);
  };
  return {
    send,
    resize: ({ rows, cols }) => send(JSON.stringify({ type: "resize", rows, cols })),
    leave: () => {
      isLeft = true;
      socket.close();
    },
  };
}

/** A browser does not report why a WebSocket was refused. */
const NOT_LET =
  "The service rejected this ticket. It is for another terminal, has expired, or another client types: then take over.";

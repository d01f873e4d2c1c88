/**
 * Terminals: a command with a pseudo-terminal in a sandbox, and the attached clients. The guest agent keeps them, so they outlive the
 * daemon; this folder has only tickets, attached clients and watchers.
 */

import type { Bound } from "../../core/call/operation.ts";
import { Tickets } from "../../core/call/tickets.ts";
import { ServiceError } from "../../core/service-error.ts";
import { makeAttach } from "./attach.ts";
import { Broadcasts } from "./broadcasts.ts";
import { makeClose } from "./close.ts";
import { makeCreate } from "./create.ts";
import type { TerminalDeps, TerminalGoal } from "./deps.ts";
import { makeGet } from "./get.ts";
import { Sessions } from "./sessions.ts";
import { makeToken } from "./token.ts";
import { makeWatch } from "./watch.ts";
import { placeOf, Writers } from "./writers.ts";

export interface Terminals {
  operations: Bound[];
  /** Registers a typist that is not attached by WebSocket; the returned function removes it, and is idempotent. */
  sit(sandboxId: string, terminalId: string, name: string): () => void;
  /** Disconnects every client, which may reconnect to the next daemon. */
  stop(): void;
}

export function makeTerminals(deps: TerminalDeps): Terminals {
  const tickets = new Tickets<TerminalGoal>(deps.ticketMark);
  const typists = new Writers();
  const sessions = new Sessions(deps, typists);
  const stopping = new AbortController();
  return {
    operations: [
      makeCreate(deps, tickets),
      ...makeGet(deps),
      makeClose(deps),
      makeToken(deps, tickets),
      makeAttach(deps, tickets, sessions),
      makeWatch(deps, new Broadcasts(deps.sandboxes, typists), stopping.signal),
    ],
    sit: (sandboxId, terminalId, name) => typists.enter(placeOf(sandboxId, terminalId), name),
    stop: () => {
      sessions.stop();
      stopping.abort(new ServiceError("shutting_down"));
    },
  };
}

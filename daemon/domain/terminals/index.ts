/**
 * Owns terminals: a command on a screen of its own in a sandbox, and the clients at it. The guest's agent keeps them, so
 * that they outlive the daemon; here are only tickets, who is attached and who watches.
 */

import type { Bound } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import { Tickets } from "../../core/tickets.ts";
import { makeAttach } from "./attach.ts";
import { Broadcasts } from "./broadcasts.ts";
import { makeClose } from "./close.ts";
import { makeCreate } from "./create.ts";
import type { TerminalDeps, TerminalGoal } from "./deps.ts";
import { makeGet } from "./get.ts";
import { Sessions } from "./sessions.ts";
import { makeToken } from "./token.ts";
import { placeOf, Typists } from "./typists.ts";
import { makeWatch } from "./watch.ts";

export interface Terminals {
  operations: Bound[];
  /** Somebody types at a terminal who came by another way than its WebSocket; what is returned says that they have left, once. */
  sit(sandboxId: string, terminalId: string, name: string): () => void;
  /** Sends every client away, who may come back to the next daemon. */
  stop(): void;
}

export function makeTerminals(deps: TerminalDeps): Terminals {
  const tickets = new Tickets<TerminalGoal>(deps.ticketMark);
  const typists = new Typists();
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

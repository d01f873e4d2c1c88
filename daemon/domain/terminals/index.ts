/**
 * Owns terminals: a command on a screen of its own in a sandbox, and the clients at it. The guest's agent keeps them, so
 * that they outlive the daemon; here are only tokens and who is attached.
 */

import type { Bound } from "../../core/operation.ts";
import { makeAttach } from "./attach.ts";
import { makeClose } from "./close.ts";
import { makeCreate } from "./create.ts";
import type { TerminalDeps } from "./deps.ts";
import { makeGet } from "./get.ts";
import { Sessions } from "./sessions.ts";
import { makeToken } from "./token.ts";
import { Tokens } from "./tokens.ts";

export interface Terminals {
  operations: Bound[];
  /** Sends every client away, who may come back to the next daemon. */
  stop(): void;
}

export function makeTerminals(deps: TerminalDeps): Terminals {
  const tokens = new Tokens();
  const sessions = new Sessions(deps);
  return {
    operations: [
      makeCreate(deps, tokens),
      ...makeGet(deps),
      makeClose(deps),
      makeToken(deps, tokens),
      makeAttach(deps, tokens, sessions),
    ],
    stop: () => sessions.stop(),
  };
}

/** Owns people: who they are, what they may in an organization, how they sign in, and the sessions that they are signed in by. */
import type { SessionId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { Holds } from "../../core/holds.ts";
import type { Bound, HeldSession } from "../../core/operation.ts";
import { makeAccount } from "./account.ts";
import type { UserDeps } from "./deps.ts";
import { makeMembers } from "./members.ts";
import { Passwords } from "./passwords.ts";
import { isCurrent, makeRecognise, type Recognise } from "./sessions.ts";
import { SignIn } from "./sign-in.ts";
import { changeSession } from "./store.ts";

export { makeUserOperator } from "./operator.ts";
export type { Asked, SignedIn } from "./sign-in.ts";

export interface Users {
  operations: Bound[];
  /** Whom a session's cookie stands for. Throws session_ended. */
  recognise: Recognise;
  signIn: SignIn;
  /** Calls `cut` when the session is no longer good, or looks elsewhere; what is returned lets go of it. */
  hold(held: HeldSession, cut: () => void): () => void;
}

export function makeUsers({ database, directory, log, planOf, url, keysEnded }: UserDeps): Users {
  const { queries } = database;
  const holds = new Holds();
  const passwords = new Passwords();
  const signIn = new SignIn(database, passwords);
  const onEnded = () => holds.look();
  const seen = (sessionId: SessionId) => {
    const written = database.commitWithin(1000, (within) => changeSession(within, sessionId, { seen_at: now() }));
    written.catch((error: unknown) => log.warn("a session's last use was not written", { error: String(error) }));
  };
  return {
    operations: [
      ...makeAccount({ database, passwords, signIn, onEnded }),
      ...makeMembers({ database, directory, url, keysEnded, onEnded }),
    ],
    recognise: makeRecognise(queries, planOf, seen),
    signIn,
    hold: (held, cut) => holds.hold(`${held.session_id} ${held.looks_at}`, () => isCurrent(queries, held), cut),
  };
}

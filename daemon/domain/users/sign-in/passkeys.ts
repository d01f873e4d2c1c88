/** Passkeys of a person: sign-in, re-authentication, and adding or removing them. */
import {
  MAX_PASSKEYS,
  type PasskeyRecord,
  passkeyAdd,
  passkeyList,
  passkeyOptions,
  passkeyRemove,
} from "../../../../shared/api/people/passkeys.ts";
import { newId, type SessionId, type UserId } from "../../../../shared/ids.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { type Database, violatesUnique } from "../../../db/transact.ts";
import { requireUser, whoIs } from "../account.ts";
import { type RequestSource, record } from "../record.ts";
import { begin, type SignedIn } from "../sessions/session-start.ts";
import { renewSession, requireSession } from "../sessions/sessions.ts";
import { getUser, membershipsOf } from "../store.ts";
import type { PasskeyRow, UserRow } from "../table.ts";
import type { Challenges, Given } from "./challenges.ts";
import {
  changePasskey,
  countPasskeys,
  deletePasskey,
  insertPasskey,
  listPasskeys,
  passkeyByCredential,
} from "./passkeys-store.ts";
import { requireWayLeft } from "./sign-in-methods.ts";
import {
  type MakeOptions,
  makeOptions,
  type PasskeyPlace,
  placeOf,
  readAnswer,
  type UseOptions,
  useOptions,
  verifyMade,
  verifyUse,
  type WebauthnResponse,
} from "./webauthn.ts";

const UNNAMED = "Passkey";

const SIGN_IN = "sign in";
const proofOf = (sessionId: SessionId): Given => ({ purpose: "prove", to: sessionId });
const additionOf = (sessionId: SessionId): Given => ({ purpose: "add", to: sessionId });
/** A new or returning user: the challenge is bound to the person too. */
const arrivalOf = (userId: UserId, visitor: string): Given => ({ purpose: `arrive as ${userId}`, to: visitor });

interface PasskeyDeps {
  database: Database;
  challenges: Challenges;
  /** URL of the web application. */
  url(): string;
  /** Of accounts elsewhere; null without. */
  issuer: URL | null;
}

/** A verified use of a passkey. */
type Use = Pick<PasskeyRow, "passkey_id" | "credential_id" | "counter" | "is_synced">;
/** A newly made passkey, not yet assigned to a user. */
export type NewPasskey = Omit<PasskeyRow, "user_id">;

export class Passkeys {
  readonly #database: Database;
  readonly #challenges: Challenges;
  readonly #url: () => string;
  readonly #issuer: URL | null;

  constructor({ database, challenges, url, issuer }: PasskeyDeps) {
    this.#database = database;
    this.#challenges = challenges;
    this.#url = url;
    this.#issuer = issuer;
  }

  /** Null if browsers cannot use passkeys here. */
  get place(): PasskeyPlace | null {
    return placeOf(this.#url());
  }

  /** `visitor` names the browser. Null if passkeys are impossible here. */
  toSignIn(visitor: string): UseOptions | null {
    const { place } = this;
    return place && useOptions(place, this.#challenges.make({ purpose: SIGN_IN, to: visitor }));
  }

  /** Null if the user has no passkey here. */
  toProve(sessionId: SessionId, userId: UserId): UseOptions | null {
    const { place } = this;
    const own = listPasskeys(this.#database.queries, userId).filter(({ rp_id }) => rp_id === place?.rp_id);
    return place && own.length > 0 ? useOptions(place, this.#challenges.make(proofOf(sessionId)), own) : null;
  }

  /** For a person that follows a link; the page requests address and name if they are "". */
  toArrive(person: { user_id: UserId; email: string; name: string }, visitor: string): MakeOptions | null {
    const { place } = this;
    const there = listPasskeys(this.#database.queries, person.user_id);
    return place && makeOptions(place, this.#challenges.make(arrivalOf(person.user_id, visitor)), person, there);
  }

  /** Throws sign_in_failed, rate_limited. */
  async signIn(text: string, requestSource: RequestSource): Promise<SignedIn> {
    const use = await this.#verify(
      text,
      requestSource.visitor === null ? null : { purpose: SIGN_IN, to: requestSource.visitor },
    );
    return await this.#database.commit((queries) => {
      const user = this.#used(queries, use);
      const org = membershipsOf(queries, user.user_id)[0]?.org_id;
      if (org === undefined) {
        throw new ServiceError("sign_in_failed", { detail: "You no longer belong to an organization." });
      }
      return begin(queries, user, org, requestSource, "passkey");
    });
  }

  /** Replaces the session's secret with the returned one. Throws sign_in_failed, session_ended, rate_limited. */
  async prove(sessionId: SessionId, text: string, requestSource: RequestSource): Promise<string> {
    const use = await this.#verify(text, proofOf(sessionId));
    return await this.#database.commit((queries) => {
      const user = this.#used(queries, use);
      const { org_id, user_id } = requireSession(queries, sessionId);
      if (user_id !== user.user_id) throw refused();
      record(queries, "auth.proved", user, org_id, requestSource, { by: "passkey", session_id: sessionId });
      return renewSession(queries, sessionId);
    });
  }

  /** The passkey of a person that follows a link. Throws validation_failed, rate_limited. */
  arrive(text: string, userId: UserId, visitor: string | null): Promise<NewPasskey> {
    return this.#made(readAnswer(text), visitor === null ? null : arrivalOf(userId, visitor), "");
  }

  operations(): Bound[] {
    const { queries } = this.#database;
    return [
      bind(passkeyList, {
        run: (call) => {
          const own = listPasskeys(queries, whoIs(call).user_id);
          return { outcome: "ok", body: { items: own.map((row) => this.#toRecord(row)) } };
        },
      }),

      bind(passkeyOptions, {
        run: (call) => {
          const { user_id, session_id } = whoIs(call);
          const { place } = this;
          if (!place) throw noPlace();
          const own = listPasskeys(queries, user_id);
          requireRoom(own);
          const challenge = this.#challenges.make(additionOf(session_id));
          const options = makeOptions(place, challenge, requireUser(queries, user_id), own);
          return { outcome: "ok", body: { options: { ...options } } };
        },
      }),

      bind(passkeyAdd, {
        run: async (call, { name = "", response }) => {
          const { user_id, session_id } = whoIs(call);
          const made = await this.#made(response, additionOf(session_id), name);
          const body = await this.#database.commit((within) => {
            requireUser(within, user_id);
            requireRoom(listPasskeys(within, user_id));
            const row = addPasskey(within, made, user_id);
            const { passkey_id, is_synced } = row;
            call.audit.details = { passkey_id, is_synced };
            const added = this.#toRecord(row);
            call.work.keep("added", added);
            return added;
          });
          return { outcome: "added", body };
        },
      }),

      bind(passkeyRemove, {
        find: (call, { passkey_id = "" }) => {
          const row = listPasskeys(queries, whoIs(call).user_id).find((each) => each.passkey_id === passkey_id);
          if (!row) throw new ServiceError("passkey_not_found");
          return row.passkey_id;
        },
        run: async (call, _input, passkey_id) => {
          const { user_id } = whoIs(call);
          const body = await this.#database.commit((within) => {
            deletePasskey(within, passkey_id);
            requireWayLeft(within, user_id, { rp_id: this.place?.rp_id ?? null, issuer: this.#issuer });
            call.audit.details = { passkey_id };
            const removed = { passkey_id, removed: true };
            call.work.keep("ok", removed);
            return removed;
          });
          return { outcome: "ok", body };
        },
      }),
    ];
  }

  /** Throws sign_in_failed, rate_limited. */
  async #verify(text: string, given: Given | null): Promise<Use> {
    const { place } = this;
    const answer = readAnswer(text);
    const row = typeof answer?.id === "string" ? passkeyByCredential(this.#database.queries, answer.id) : undefined;
    if (!place || !given || !answer || !row || row.rp_id !== place.rp_id) throw refused();
    const used = await verifyUse(place, answer, row, (challenge) => this.#challenges.isOpen(challenge, given));
    if (!used || !this.#challenges.answer(used.challenge)) throw refused();
    const { passkey_id, credential_id } = row;
    return { passkey_id, credential_id, counter: used.counter, is_synced: used.is_synced };
  }

  /** Records the use, after a check of the passkey's current row in this transaction. Throws sign_in_failed. */
  #used(queries: Queries, { credential_id, passkey_id, counter, is_synced }: Use): UserRow {
    const row = passkeyByCredential(queries, credential_id);
    const user = row && getUser(queries, row.user_id);
    // Of two concurrent uses with the same counter, one is by a copy.
    const isCounted = row && (counter > row.counter || (counter === 0 && row.counter === 0));
    if (!isCounted || row.passkey_id !== passkey_id || !user || user.disabled_at !== null) throw refused();
    changePasskey(queries, passkey_id, { counter, is_synced, last_used_at: now() });
    return user;
  }

  /** Throws validation_failed, rate_limited. */
  async #made(answer: WebauthnResponse | null, given: Given | null, name: string): Promise<NewPasskey> {
    const { place } = this;
    if (!place) throw noPlace();
    const isOpen = (challenge: string) => given !== null && this.#challenges.isOpen(challenge, given);
    const made = answer && (await verifyMade(place, answer, isOpen));
    if (!made || !this.#challenges.answer(made.challenge)) {
      const message = "was not created for this page, or more than 5 minutes ago";
      throw new ServiceError("validation_failed", { errors: [{ field: "passkey", code: "refused", message }] });
    }
    const { credential_id, public_key, counter, transports, is_synced } = made;
    return {
      credential_id,
      public_key,
      counter,
      transports,
      is_synced,
      passkey_id: newId("pky"),
      rp_id: place.rp_id,
      name: name.trim() || UNNAMED,
      created_at: now(),
      last_used_at: null,
    };
  }

  #toRecord({ passkey_id, name, rp_id, is_synced, created_at, last_used_at }: PasskeyRow): PasskeyRecord {
    return { passkey_id, name, rp_id, is_usable: rp_id === this.place?.rp_id, is_synced, created_at, last_used_at };
  }
}

/** Name at which passkeys are valid, and the number of passkeys made for others. */
export function findPasskeys(queries: Queries, url: string) {
  const rp_id = placeOf(url)?.rp_id ?? null;
  return { rp_id, elsewhere: countPasskeys(queries).filter((each) => each.rp_id !== rp_id) };
}

/** Within a transaction. Throws already_exists. */
export function addPasskey(queries: Queries, made: NewPasskey, user_id: UserId): PasskeyRow {
  const row = { ...made, user_id };
  try {
    insertPasskey(queries, row);
  } catch (error) {
    if (!violatesUnique(error, "passkeys.credential_id")) throw error;
    throw new ServiceError("already_exists", { detail: "The passkey is already registered.", cause: error });
  }
  return row;
}

const refused = () => new ServiceError("sign_in_failed", { detail: "The passkey was not accepted. Try again." });

const noPlace = () =>
  new ServiceError("invalid_state", {
    detail: "The service has no host name for which browsers store passkeys.",
    hint: "The operator has to set http.base_url to an https:// URL with a host name.",
  });

function requireRoom(own: readonly PasskeyRow[]): void {
  if (own.length < MAX_PASSKEYS) return;
  throw new ServiceError("quota_exceeded", { detail: `A user may have ${MAX_PASSKEYS} passkeys.` });
}

/** Data of new users, for all ways to join: address, name, and a password or passkey. */
import { newId, type UserId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import type { Queries } from "../../../db/client.ts";
import { addressOf, requirePerson } from "../person.ts";
import type { RequestSource } from "../record.ts";
import { addPasskey, type NewPasskey, type Passkeys } from "../sign-in/passkeys.ts";
import { type Passwords, stranger } from "../sign-in/passwords.ts";
import type { UserRow } from "../table.ts";
import { addUser } from "./add-user.ts";

export interface NewPerson {
  email: string;
  name: string;
  way: NewWay;
}

/** Sign-in method of a new user: a password, or a passkey that the browser has made for this user. */
export type NewWay = { password: string } | { passkey: string; user_id: UserId };

/** The stored part of it. */
interface KeptWay {
  password_hash: string | null;
  passkey: NewPasskey | null;
}

export interface NewUser {
  user: UserRow;
  passkey: NewPasskey | null;
}

export class NewUsers {
  readonly #passwords: Passwords;
  readonly #passkeys: Passkeys;

  constructor(passwords: Passwords, passkeys: Passkeys) {
    this.#passwords = passwords;
    this.#passkeys = passkeys;
  }

  /** Throws validation_failed, rate_limited. */
  async make(person: NewPerson, requestSource: RequestSource): Promise<NewUser> {
    const { way } = person;
    const name = person.name.trim();
    const email = addressOf(person.email);
    requirePerson({ email, name, ...("password" in way ? { password: way.password } : {}) });
    const { password_hash, passkey } = await this.way(way, requestSource);
    const user_id = "passkey" in way ? way.user_id : newId("usr");
    const user = { user_id, email, name, password_hash, created_at: now(), disabled_at: null, verified_at: null };
    return { user, passkey };
  }

  /** Throws validation_failed, rate_limited. */
  async way(way: NewWay, { network, visitor }: RequestSource): Promise<KeptWay> {
    if ("passkey" in way) {
      return { password_hash: null, passkey: await this.#passkeys.arrive(way.passkey, way.user_id, visitor) };
    }
    requirePerson({ password: way.password });
    return { password_hash: await this.#passwords.hash(way.password, stranger(network)), passkey: null };
  }
}

/** Within a transaction. Throws already_exists. */
export function addNew(queries: Queries, { user, passkey }: NewUser): void {
  addUser(queries, user);
  if (passkey) addPasskey(queries, passkey, user.user_id);
}

/** Passkey options of a page, or a URL with a host name, since browsers have no passkeys for IP addresses. */
import { randomBytes } from "node:crypto";
import type { SessionId, UserId } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";
import type { Users } from "../../domain/users/index.ts";

const ADDRESS = /^(?:127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Options for the browser, or the URL of the same page with a host name. */
export type SignInOption = { options: object } | { at: string };

interface Person {
  user_id: UserId;
  email: string;
  name: string;
}

/** Each is null if passkeys are not available. */
export interface SignInOptions {
  toSignIn(): SignInOption | null;
  /** For the signed-in user; null also for a user without passkeys. */
  toProve(): SignInOption | null;
  toArrive(person: Person): SignInOption | null;
  /** For options that were created already. */
  of(options: object): SignInOption | null;
  /** The browser's ID, which is new if it had none. */
  visitor(): string;
  /** The browser's new ID in this visit; null if it had one, or needs none. */
  readonly fresh: string | null;
}

export function makeSignInOptions(
  passkeys: Users["passkeys"],
  url: URL,
  caller: Caller | null,
  visitor: string | null,
): SignInOptions {
  let fresh: string | null = null;
  const known = (): string => {
    if (visitor !== null) return visitor;
    fresh ??= randomBytes(32).toString("base64url");
    return fresh;
  };
  const offer = (options: () => object | null): SignInOption | null => {
    const { place } = passkeys;
    if (place?.rp_id === "localhost" && ADDRESS.test(url.hostname))
      return { at: place.origin + url.pathname + url.search };
    const made = options();
    return made && { options: made };
  };
  return {
    toSignIn: () => offer(() => passkeys.toSignIn(known())),
    toProve: () => {
      const session_id: SessionId | undefined = caller?.session?.session_id;
      if (!caller || session_id === undefined) return null;
      return offer(() => passkeys.toProve(session_id, caller.key_id as string as UserId));
    },
    toArrive: (person) => offer(() => passkeys.toArrive(person, known())),
    of: (options) => offer(() => options),
    visitor: known,
    get fresh() {
      return fresh;
    },
  };
}

/**
 * Authenticates the host to the agent. The first welcome brings a secret; from then on a host must prove that it has it. The secret is in
 * memory only, and templates are saved before any welcome: no clone shares it.
 *
 * The memory of a guest that was set up may be saved too, and be restored as another guest. Then the host, which proves itself with the
 * saved secret, brings a new one:
 *
 *     known ──restored, proven by known──▶ known and next ──proven by next──▶ next is known
 *
 * In between, both secrets are accepted: the host switches to the next one once it has the guest's ready, which may be lost. Each secret
 * has its own nonce, and a host gets the nonce of the secret by which it knows the guest. For the same reason the hello proves both.
 */
import { guestProof, hostProof, isToken, sameText } from "../shared/agent-protocol/host-proof.ts";
import type { Hello, Restored } from "../shared/agent-protocol/messages.ts";
import { randomHex } from "./random.ts";

const CHALLENGE_BYTES = 32;
const NONCE_BYTES = 16;

/** Reasons for which a welcome is rejected. */
export const NO_SECRET = "the welcome has no secret";
export const UNPROVEN_HOST = "the host has not proven that it set this guest up";
export const INVALID_RESTORED = "the welcome's restored is malformed";

/** A secret, and the nonce that is disclosed to its holder. */
class Acquaintance {
  readonly secret: string;
  #nonce: string | null = null;

  constructor(secret: string) {
    this.secret = secret;
  }

  /** Generated on first use, which is after the welcome's entropy. */
  get nonce(): string {
    this.#nonce ??= randomHex(NONCE_BYTES);
    return this.#nonce;
  }
}

/** The identities by which an admitted host knows the guest: from now on, and the previous one if the guest was just restored. */
export interface Admitted {
  now: Pick<Acquaintance, "nonce">;
  before: Pick<Acquaintance, "nonce"> | null;
}

export class HostAuth {
  #known: Acquaintance | null = null;
  #next: Acquaintance | null = null;

  /** The part of a hello that proves the secret, with the challenge for the host. Empty for the first host, which supplies the secret. */
  greeting(port: number, guestCid: number): Pick<Hello, "challenge" | "proofs"> {
    const known = [this.#next, this.#known].filter((one) => one !== null);
    if (known.length === 0) return {};
    const challenge = randomHex(CHALLENGE_BYTES);
    return { challenge, proofs: known.map(({ secret }) => guestProof(secret, guestCid, port, challenge)) };
  }

  /** Throws if a welcome is not from the host. `port` and `challenge`: of the host's connection. */
  admit(welcome: unknown, port: number, challenge: string | undefined): Admitted {
    const { secret, proof } = Object(welcome) as { secret?: unknown; proof?: unknown };
    if (this.#known === null) {
      if (!isToken(secret)) throw new Error(NO_SECRET);
      this.#known = new Acquaintance(secret);
      return { now: this.#known, before: null };
    }
    const by = [this.#next, this.#known].find((one) => one !== null && isProven(one, proof, port, challenge));
    if (!by) throw new Error(UNPROVEN_HOST);
    if (by === this.#next) this.#next = null;
    this.#known = by;
    const another = restoredIn(welcome)?.secret;
    if (another === undefined) return { now: by, before: null };
    // A repeated secret is the same one: the host may have missed the first answer.
    if (this.#next?.secret !== another) this.#next = new Acquaintance(another);
    return { now: this.#next, before: by };
  }
}

function isProven({ secret }: Acquaintance, proof: unknown, port: number, challenge: string | undefined): boolean {
  return challenge !== undefined && typeof proof === "string" && sameText(proof, hostProof(secret, port, challenge));
}

/** The welcome's `restored`; undefined if absent. Throws if it is invalid. */
export function restoredIn(welcome: unknown): Restored | undefined {
  const { restored } = Object(welcome) as { restored?: unknown };
  if (restored === undefined) return undefined;
  const { how, secret } = Object(restored) as Partial<Record<keyof Restored, unknown>>;
  if (how === "resumed" && secret === undefined) return { how };
  if ((how === "forked" || how === "rolled_back") && isToken(secret)) return { how, secret };
  throw new Error(INVALID_RESTORED);
}

/**
 * Which host the agent trusts. The first welcome brings a secret; from then on a host is only who proves that it
 * has it. It is in memory alone, and templates are saved before any welcome: no clone shares it.
 */
import { hostProof, isToken, sameText } from "../shared/agent-protocol/host-proof.ts";
import { randomHex } from "./random.ts";

const CHALLENGE_BYTES = 32;

export class HostTrust {
  #secret: string | null = null;

  /** What the host of a new connection has to answer; undefined for the first host, who brings the secret. */
  challenge(): string | undefined {
    return this.#secret === null ? undefined : randomHex(CHALLENGE_BYTES);
  }

  /** Throws when a welcome does not come from the host. `port` and `challenge` are those of its connection. */
  admit(welcome: unknown, port: number, challenge: string | undefined): void {
    const { secret, proof } = Object(welcome) as { secret?: unknown; proof?: unknown };
    if (this.#secret === null) {
      if (!isToken(secret)) throw new Error("the welcome brings no secret");
      this.#secret = secret;
      return;
    }
    const proven =
      challenge !== undefined && typeof proof === "string" && sameText(proof, hostProof(this.#secret, port, challenge));
    if (!proven) throw new Error("the host has not proven that it is the one which set this guest up");
  }
}

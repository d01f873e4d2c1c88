/** Owns who follows events: how many may, and that none does so longer than its key is good. */
import type { KeyId, OrgId } from "../../shared/ids.ts";
import type { Caller } from "../core/operation.ts";
import { ServiceError } from "../core/service-error.ts";

const MOST_READERS = 1000;
/** So that no organization takes all places. */
const MOST_OF_ORG = 250;
/** A key that was revoked is noticed after this time. */
const LOOK_AT_KEYS_MS = 500;

interface Reader {
  org_id: OrgId;
  key_id: KeyId;
  cut(): void;
}

export class Readers {
  readonly #isCurrentKey: (keyId: KeyId) => boolean;
  readonly #all = new Set<Reader>();
  #timer: Timer | undefined;

  constructor(isCurrentKey: (keyId: KeyId) => boolean) {
    this.#isCurrentKey = isCurrentKey;
  }

  /** Takes a place until the signal ends it; `cut` is called when the key is no longer good. Throws rate_limited. */
  add({ org_id, key_id }: Pick<Caller, "org_id" | "key_id">, cut: () => void, signal: AbortSignal): void {
    const ofOrg = [...this.#all].filter((reader) => reader.org_id === org_id).length;
    if (this.#all.size >= MOST_READERS || ofOrg >= MOST_OF_ORG) {
      throw new ServiceError("rate_limited", {
        detail: `At most ${MOST_OF_ORG} readers of an organization follow events, and ${MOST_READERS} in all.`,
        retryAfterSeconds: 5,
      });
    }
    const reader = { org_id, key_id, cut };
    this.#all.add(reader);
    this.#timer ??= setInterval(() => this.#lookAtKeys(), LOOK_AT_KEYS_MS);
    const leave = () => {
      this.#all.delete(reader);
      if (this.#all.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  }

  #lookAtKeys(): void {
    const keys = new Set([...this.#all].map(({ key_id }) => key_id));
    const gone = new Set([...keys].filter((keyId) => !this.#isCurrentKey(keyId)));
    for (const reader of [...this.#all]) if (gone.has(reader.key_id)) reader.cut();
  }
}

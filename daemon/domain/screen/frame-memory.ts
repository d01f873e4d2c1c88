/** Owns what the frames of all open screens may take in memory, and what those of one organization. */
import { Places } from "../../core/places.ts";
import { ServiceError } from "../../core/service-error.ts";

/** Of screens of 1280x800 there are 128 in this; the largest that may be is an eighth of it. */
const MOST_BYTES = 512 * 1024 * 1024;
const ALL = "all";

export class FrameMemory {
  readonly #all: Places;
  readonly #ofOrg: Places;
  readonly #makeRoom: () => boolean;

  /** `makeRoom` gives back what nobody needs now, one frame at a time; false when there is none. */
  constructor(makeRoom: () => boolean, mostBytes = MOST_BYTES) {
    this.#makeRoom = makeRoom;
    this.#all = new Places(mostBytes, full);
    this.#ofOrg = new Places(mostBytes / 2, full);
  }

  /** What is returned gives it back, once. Throws insufficient_capacity. */
  hold(orgId: string, bytes: number): () => void {
    for (;;) {
      try {
        return this.#take(orgId, bytes);
      } catch (error) {
        if (!this.#makeRoom()) throw error;
      }
    }
  }

  #take(orgId: string, bytes: number): () => void {
    const giveOrgs = this.#ofOrg.take(orgId, bytes);
    try {
      const giveAll = this.#all.take(ALL, bytes);
      return () => {
        giveOrgs();
        giveAll();
      };
    } catch (error) {
      giveOrgs();
      throw error;
    }
  }
}

function full(): ServiceError {
  return new ServiceError("insufficient_capacity", {
    detail: "The open screens take all the memory that they may have.",
  });
}

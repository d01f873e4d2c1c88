/** Owns what the frames of all open screens may take in memory, and what those of one organization. */
import { Places } from "../../core/places.ts";
import { ServiceError } from "../../core/service-error.ts";

/** Of screens of 1280x800 there are 128 in this; the largest that may be is an eighth of it. */
const MOST_BYTES = 512 * 1024 * 1024;
const ALL = "all";

/** Gives back what nobody needs now, one frame at a time: of an organization, or for null of any. False when there is none. */
type MakeRoom = (orgId: string | null) => boolean;

export class FrameMemory {
  readonly #all: Places;
  readonly #ofOrg: Places;
  readonly #makeRoom: MakeRoom;

  constructor(makeRoom: MakeRoom, mostBytes = MOST_BYTES) {
    this.#makeRoom = makeRoom;
    this.#all = new Places(mostBytes, () => full("on this host"));
    this.#ofOrg = new Places(mostBytes / 2, () => full("of the organization"));
  }

  /** What is returned gives it back, once. Throws insufficient_capacity. */
  hold(orgId: string, bytes: number): () => void {
    const giveOrgs = this.#take(() => this.#ofOrg.take(orgId, bytes), orgId);
    try {
      const giveAll = this.#take(() => this.#all.take(ALL, bytes), null);
      return () => {
        giveOrgs();
        giveAll();
      };
    } catch (error) {
      giveOrgs();
      throw error;
    }
  }

  /** At an organization's own end none of the others' has to go. */
  #take(take: () => () => void, orgId: string | null): () => void {
    for (;;) {
      try {
        return take();
      } catch (error) {
        if (!this.#makeRoom(orgId)) throw error;
      }
    }
  }
}

function full(whose: string): ServiceError {
  return new ServiceError("insufficient_capacity", {
    detail: `The open screens ${whose} take all the memory that they may have.`,
  });
}

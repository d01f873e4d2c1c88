/** Memory of the frames of all open screens, and of each organization's; when the memory is full, it is shared equally. */
import { ConcurrencyLimit } from "../../core/concurrency/concurrency-limit.ts";
import { ServiceError } from "../../core/service-error.ts";

/** Enough for 128 screens of 1280x800; the largest permitted screen takes an eighth of it. */
const MAX_BYTES = 512 * 1024 * 1024;
const ALL = "all";

/** Frees one unused frame of an organization, or for null of all organizations. False if there are no unused frames. */
type MakeRoom = (orgId: string | null) => boolean;
/** Closes the organization's newest screen, even one in use. False if none exists. */
type CutNewest = (orgId: string) => boolean;

export class FrameMemory {
  readonly #all: ConcurrencyLimit;
  readonly #ofOrg: ConcurrencyLimit;
  readonly #makeRoom: MakeRoom;
  readonly #cutNewest: CutNewest;
  /** Bytes by organization. */
  readonly #held = new Map<string, number>();

  constructor(makeRoom: MakeRoom, cutNewest: CutNewest, mostBytes = MAX_BYTES) {
    this.#makeRoom = makeRoom;
    this.#cutNewest = cutNewest;
    this.#all = new ConcurrencyLimit(mostBytes, () => full("on this host"));
    this.#ofOrg = new ConcurrencyLimit(mostBytes / 2, () => full("of the organization"));
  }

  /** The returned function releases the bytes; it is idempotent. Throws insufficient_capacity. */
  hold(orgId: string, bytes: number): () => void {
    const giveOrgs = this.#take(
      () => this.#ofOrg.take(orgId, bytes),
      () => this.#makeRoom(orgId),
    );
    try {
      const giveAll = this.#take(
        () => this.#all.take(ALL, bytes),
        () => this.#makeRoom(null) || this.#share((this.#held.get(orgId) ?? 0) + bytes),
      );
      this.#count(orgId, bytes);
      let isGiven = false;
      return () => {
        if (isGiven) return;
        isGiven = true;
        this.#count(orgId, -bytes);
        giveOrgs();
        giveAll();
      };
    } catch (error) {
      giveOrgs();
      throw error;
    }
  }

  /** At an organization's own limit, `makeRoom` evicts only that organization's frames. */
  #take(take: () => () => void, makeRoom: () => boolean): () => void {
    for (;;) {
      try {
        return take();
      } catch (error) {
        if (!makeRoom()) throw error;
      }
    }
  }

  /** Closes the newest screen of the largest holder, unless the caller would then hold as much. */
  #share(wouldHave: number): boolean {
    const [biggest, has] = [...this.#held].reduce((most, each) => (each[1] > most[1] ? each : most), ["", 0]);
    return has > wouldHave && this.#cutNewest(biggest);
  }

  #count(orgId: string, bytes: number): void {
    const held = (this.#held.get(orgId) ?? 0) + bytes;
    if (held > 0) this.#held.set(orgId, held);
    else this.#held.delete(orgId);
  }
}

function full(scope: string): ServiceError {
  return new ServiceError("insufficient_capacity", {
    detail: `The open screens ${scope} take all the memory that they may have.`,
  });
}

/**
 * Selection among the servers of `cluster.url`: the writable one. The last primary is tried first; if it does not answer quickly, all
 * others are tried concurrently, since a server on a dead host does not answer at all.
 */
import { sleep } from "../core/clock.ts";
import type { Address } from "./address.ts";
import type { Session } from "./session.ts";
import { asUnavailable, DirectoryUnavailable } from "./unavailable.ts";

/** Exceeds the connection time of a reachable server. */
const HEAD_START_MS = 300;

/** A connection to that server, which has proved to be writable. It is aborted as soon as it is `late`. */
export type Open = (address: Address, late: AbortSignal) => Promise<Session>;

export class Servers {
  readonly #addresses: readonly Address[];
  #last: Address | null = null;

  constructor(addresses: readonly Address[]) {
    this.#addresses = addresses;
  }

  /** The first connection to a writable server; the others are aborted. Rejects with DirectoryUnavailable. */
  async find(open: Open): Promise<Session> {
    const late = new AbortController();
    const last = this.#last;
    const attempt = (address: Address) => open(address, late.signal).then((session) => ({ address, session }));
    const first = last === null ? [] : [attempt(last)];
    const others = this.#addresses.filter((each) => each !== last);
    const turn = Promise.race([...first.map(failed), sleep(first.length * HEAD_START_MS, late.signal)]);
    // There may be no others.
    turn.catch(() => {});
    const all = [...first, ...others.map((address) => turn.then(() => attempt(address)))];
    try {
      const found = await Promise.any(all);
      this.#last = found.address;
      for (const each of all)
        void each.then(
          ({ session }) => session !== found.session && session.discard(),
          () => {},
        );
      return found.session;
    } catch (error) {
      this.#last = null;
      throw together((error as AggregateError).errors, this.#addresses.length);
    } finally {
      late.abort();
    }
  }

  /** The last server misbehaved: it may be partitioned from its standbys, or from us, and another one the primary by now. */
  doubt(): void {
    this.#last = null;
  }
}

/** Resolves after it has failed; rejects if no other server is to be tried. */
async function failed(attempt: Promise<unknown>): Promise<void> {
  await attempt.then(
    () => Promise.reject(new Error("it was found")),
    () => {},
  );
}

/** Combines the servers' errors. A standby is normal: the cause is another server's error. */
function together(errors: readonly unknown[], count: number): unknown {
  const away = errors.map(asUnavailable);
  if (count === 1) return away[0];
  const cause = away.find((each) => !(each instanceof DirectoryUnavailable && each.reason === "read_only")) ?? away[0];
  if (!(cause instanceof DirectoryUnavailable)) return cause;
  const messages = [...new Set(away.map((each) => (each instanceof Error ? each.message : String(each))))];
  return new DirectoryUnavailable(cause.reason, messages.join("; "), { cause });
}

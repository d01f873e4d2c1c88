/** Traffic of each exposed port since it was exposed, or since the daemon started: it is not stored. */
import type { PortTraffic } from "../../../shared/api/shown-port.ts";
import { now } from "../../core/clock.ts";
import type { GuestPort } from "../../host/guest-link/connect.ts";
import type { PortRow } from "./table.ts";

type Counts = Omit<PortTraffic, "since">;

export class Traffic {
  readonly #startedAt = now();
  /** By label, from the first connection on. */
  readonly #counts = new Map<string, Counts>();

  of({ label, created_at }: Pick<PortRow, "label" | "created_at">): PortTraffic {
    const since = created_at > this.#startedAt ? created_at : this.#startedAt;
    return { ...(this.#counts.get(label) ?? newCounts()), since };
  }

  /** Counts the bytes of a connection; `firstBytes` were already sent to the server. */
  counted(label: string, connection: GuestPort, firstBytes: number): GuestPort {
    const counts = this.#counts.get(label) ?? newCounts();
    this.#counts.set(label, counts);
    counts.connections++;
    counts.open_connections++;
    counts.received_bytes += firstBytes;
    const ended = connection.ended.finally(() => {
      counts.open_connections--;
    });
    return {
      ...connection,
      ended,
      output: outputOf(connection.output, counts),
      write: async (bytes) => {
        const length = bytes.byteLength;
        await connection.write(bytes);
        counts.received_bytes += length;
      },
    };
  }

  /** Drops the counts of a port that is no longer exposed. */
  forget(label: string): void {
    this.#counts.delete(label);
  }
}

const newCounts = (): Counts => ({ connections: 0, open_connections: 0, sent_bytes: 0, received_bytes: 0 });

async function* outputOf(output: AsyncIterable<Uint8Array>, counts: Counts): AsyncGenerator<Uint8Array> {
  for await (const bytes of output) {
    counts.sent_bytes += bytes.byteLength;
    yield bytes;
  }
}

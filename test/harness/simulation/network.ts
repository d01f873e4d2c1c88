/**
 * The network of a simulation: messages from one place to another arrive in order, after a delay. While a link is cut they are held, as TCP
 * retransmits them, and each direction between two places can be cut separately.
 */
import type { Process, World } from "./world.ts";

interface Way {
  isCut: boolean;
  /** When the last message arrives. */
  lastAt: number;
  held: (() => void)[];
}

export class Network {
  readonly #world: World;
  readonly #ways = new Map<string, Way>();

  constructor(world: World) {
    this.#world = world;
  }

  #way(from: string, to: string): Way {
    const name = `${from}>${to}`;
    const way = this.#ways.get(name) ?? { isCut: false, lastAt: 0, held: [] };
    this.#ways.set(name, way);
    return way;
  }

  isCut(from: string, to: string): boolean {
    return this.#way(from, to).isCut;
  }

  cut(from: string, to: string): void {
    this.#way(from, to).isCut = true;
  }

  heal(): void {
    for (const way of this.#ways.values()) {
      way.isCut = false;
      for (const go of way.held.splice(0)) go();
    }
  }

  /** `arrive` runs as an event of `process`. */
  send(from: string, to: string, process: Process | null, arrive: () => void): void {
    const way = this.#way(from, to);
    const go = () => {
      way.lastAt = Math.max(way.lastAt, this.#world.now + this.#delay());
      this.#world.after(way.lastAt - this.#world.now, process, arrive);
    };
    if (way.isCut) way.held.push(go);
    else go();
  }

  #delay(): number {
    const { chance } = this.#world;
    return chance.next() < 0.03 ? chance.next() * 400 : 0.1 + chance.next() * 2;
  }
}

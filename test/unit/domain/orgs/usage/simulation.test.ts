/**
 * A million metered seconds and more on a real database: sandboxes start, pause and end, drives fill, daemons are killed at any moment,
 * hosts reboot, clocks are set. The test computes the true values independently; usage must equal them.
 */
import { describe, expect, test } from "vitest";
import { getCredits } from "../../../../../daemon/domain/orgs/usage/credits-store.ts";
import { dayAt } from "../../../../../daemon/domain/orgs/usage/moment.ts";
import { FREE } from "../../../../../daemon/domain/orgs/usage/prices.ts";
import type { Dimension } from "../../../../../daemon/domain/orgs/usage/store.ts";
import { Chance } from "../../../../harness/random.ts";
import { MeterFixture, ORG, placeOf, RATE } from "./meter-fixture.ts";

const LONG = process.env.ROOMD_TEST_LONG === "1";
const WORLDS = LONG ? 20 : 1;
const STEPS = LONG ? 2000 : 400;
const ROOMS = ["rom_1", "rom_2", "rom_3"];
const KEYS = ["kid_1", "kid_2"];

interface Simulated {
  subject: string;
  place: ReturnType<typeof placeOf>;
  /** Running according to the database; in standby otherwise. */
  running: boolean;
  /** Whether its guest still lives. */
  alive: boolean;
  /** Counted since its last checkpoint, and lost with a guest that dies unseen. */
  unseen: Map<string, number>;
}

class World {
  readonly host = new MeterFixture("2026-02-27T23:00:00Z", { ...FREE, sandbox_hour: 3600 });
  readonly sandboxes: Simulated[] = [];
  /** Milliseconds of sandboxes for each value of each dimension; bytes sent for each agent. */
  readonly truth = new Map<string, number>();
  readonly sent = new Map<string, number>();
  totalMs = 0;
  #made = 0;
  readonly #chance = new Chance();
  /** Whether the clock is set at times: the days of events are then undefined. */
  readonly #setsClock: boolean;

  constructor(setsClock: boolean) {
    this.#setsClock = setsClock;
  }

  get seed(): number {
    return this.#chance.seed;
  }

  chance(share: number): boolean {
    return this.#chance.next() < share;
  }

  pick<T>(from: readonly T[]): T {
    return this.#chance.pick(from);
  }

  /** Time passes in parts within one day each, so that the true values need no division by day. */
  pass(): void {
    for (let left = this.#chance.whole(0, 1_500_000); left > 0; ) {
      const untilMidnight = 86_400_000 - (Date.now() % 86_400_000);
      const part = Math.min(left, untilMidnight);
      const day = dayAt(Date.now());
      for (const { running, alive, unseen } of this.sandboxes) {
        if (running && alive) unseen.set(day, (unseen.get(day) ?? 0) + part);
      }
      this.host.pass(part / 1000);
      left -= part;
    }
  }

  /** Its guest was seen until now: all of its time counts. */
  seen(sandbox: Simulated): void {
    const { place, unseen } = sandbox;
    for (const [day, ms] of unseen) {
      this.totalMs += ms;
      const { room_uid, agent_id, key_id } = place;
      for (const [by, id] of Object.entries({ day, room: room_uid, agent: agent_id, key: key_id })) {
        this.truth.set(`${by} ${id}`, (this.truth.get(`${by} ${id}`) ?? 0) + ms);
      }
    }
    unseen.clear();
  }

  seenAll(): void {
    for (const sandbox of this.sandboxes) if (sandbox.running) this.seen(sandbox);
  }

  async create(): Promise<void> {
    const number = this.#made++;
    const place = placeOf(`a-${number % 17}`, this.pick(ROOMS), this.pick(KEYS));
    const sandbox = { subject: `sbx_${number}`, place, running: true, alive: true, unseen: new Map<string, number>() };
    await this.host.opens(sandbox.subject, place);
    this.sandboxes.push(sandbox);
  }

  async end(sandbox: Simulated): Promise<void> {
    await this.host.closes(sandbox.subject);
    if (sandbox.running) this.seen(sandbox);
    this.sandboxes.splice(this.sandboxes.indexOf(sandbox), 1);
  }

  async changeStandby(sandbox: Simulated): Promise<void> {
    if (sandbox.running) await this.host.closes(sandbox.subject);
    else await this.host.opens(sandbox.subject, sandbox.place);
    if (sandbox.running) this.seen(sandbox);
    sandbox.running = !sandbox.running;
  }

  async send(): Promise<void> {
    const place = placeOf(`a-${this.#chance.whole(0, 16)}`, this.pick(ROOMS), this.pick(KEYS));
    await this.host.database.commit(() => this.host.meter.count(place, { messages: 1 }));
    this.sent.set(place.agent_id, (this.sent.get(place.agent_id) ?? 0) + 1);
  }

  /** The daemon is killed with writes under way, which were not acknowledged, and another comes some time later. */
  async kill(): Promise<void> {
    const { host } = this;
    const lost = [
      host.database.commit(() => host.meter.count(placeOf("a-1"), { messages: 1 })),
      ...this.sandboxes.slice(0, 2).map(({ subject }) => host.closes(subject)),
    ];
    host.kill();
    expect((await Promise.allSettled(lost)).every(({ status }) => status === "rejected")).toBe(true);
    const isReboot = this.chance(0.2);
    for (const sandbox of this.sandboxes) if (isReboot || this.chance(0.1)) sandbox.alive = false;
    if (isReboot) host.reboot(this.#chance.whole(60, 100_000));
    else this.pass();
    host.start();
    for (const sandbox of [...this.sandboxes]) {
      if (sandbox.alive) {
        if (sandbox.running) await host.opens(sandbox.subject, sandbox.place);
        if (sandbox.running) this.seen(sandbox);
      } else {
        await host.closes(sandbox.subject);
        this.sandboxes.splice(this.sandboxes.indexOf(sandbox), 1);
      }
    }
  }

  async step(): Promise<void> {
    this.pass();
    if (this.chance(0.4) && this.sandboxes.length < 40) await this.create();
    if (this.chance(0.15) && this.sandboxes.length > 0) await this.end(this.pick(this.sandboxes));
    if (this.chance(0.2) && this.sandboxes.length > 0) await this.changeStandby(this.pick(this.sandboxes));
    if (this.chance(0.3)) await this.send();
    if (this.chance(0.05)) await this.kill();
    if (this.#setsClock && this.chance(0.1)) this.host.step(this.#chance.whole(-100_000, 100_000));
    if (this.chance(0.1)) {
      await this.host.meter.checkpoint();
      this.seenAll();
    }
  }

  /** Compares usage, up to now, with the true values. */
  async check(): Promise<void> {
    const open = this.sandboxes.flatMap(({ unseen }) => [...unseen.values()]).reduce((sum, ms) => sum + ms, 0);
    expect(Math.round(this.host.totals().sandbox_seconds * 1000)).toBe(this.totalMs + open);
    await this.host.meter.checkpoint();
    this.seenAll();
    expect(Math.round(this.host.totals().sandbox_seconds * 1000)).toBe(this.totalMs);
    // A credit a second.
    expect(getCredits(this.host.database.queries, ORG).used_micro).toBe(this.totalMs * 1000);
    for (const by of ["day", "room", "agent", "key"] as const satisfies Dimension[]) {
      const groups = Object.entries(this.host.groups(by));
      for (const [id, { sandbox_seconds, vcpu_seconds, memory_mib_seconds }] of groups) {
        const ms = Math.round(sandbox_seconds * 1000);
        const isTold = by !== "day" || !this.#setsClock;
        if (isTold) expect([by, id, ms]).toEqual([by, id, this.truth.get(`${by} ${id}`) ?? 0]);
        expect(Math.round(vcpu_seconds * 1000)).toBe(ms * RATE.vcpu_count);
        expect(Math.round(memory_mib_seconds * 1000)).toBe(ms * RATE.memory_mib);
      }
      expect(groups.reduce((sum, [, each]) => sum + Math.round(each.sandbox_seconds * 1000), 0)).toBe(this.totalMs);
    }
    const sent = Object.entries(this.host.groups("agent")).filter(([, { messages }]) => messages > 0);
    expect(Object.fromEntries(sent.map(([id, { messages }]) => [id, messages]))).toEqual(Object.fromEntries(this.sent));
  }
}

describe.each([false, true])("usage equals the true values, with clock changes: %s", (setsClock) => {
  test.each(Array.from({ length: WORLDS }, (_, at) => at + 1))("in world %i", { timeout: 600_000 }, async () => {
    const world = new World(setsClock);
    using _ = world.host;
    console.log(`usage: seed ${world.seed}`);
    for (let step = 0; step < STEPS; step++) {
      await world.step();
      if (step % 50 === 0) await world.check();
    }
    await world.check();
    // Sandboxes ran for a day at least, whatever chance has drawn: most worlds have weeks.
    expect(world.totalMs).toBeGreaterThan(86_400_000);
  });
});

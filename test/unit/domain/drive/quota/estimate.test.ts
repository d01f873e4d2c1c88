/** The estimated usage of a drive compared with its actual usage, under any interleaving of calls and measures. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Estimate, type Moment } from "../../../../../daemon/domain/drive/quota/estimate.ts";
import type { Measured } from "../../../../../daemon/domain/drive/quota/measure.ts";
import type { Reservation } from "../../../../../daemon/domain/drive/quota/reservation.ts";

const amountOf = (bytes: number) => ({ used_bytes: bytes, file_count: 1, entry_count: 1 });
const found = (files: Iterable<number>, more: Partial<Measured> = {}): Measured => {
  const sizes = [...files];
  const used_bytes = sizes.reduce((sum, bytes) => sum + bytes, 0);
  const counts = { file_count: sizes.length, entry_count: sizes.length };
  return { used_bytes, ...counts, is_complete: true, kept_by_kernel: false, ...more };
};

/** A drive with a few places, which a measure visits one after another while calls replace and delete their files. */
class Model {
  readonly estimate = new Estimate();
  readonly files = new Map<number, number>();
  readonly writes: { place: number; bytes: number; since: Moment; claim: Pick<Reservation, "bytes" | "entries"> }[] =
    [];
  /** Writes and deletions that have changed the drive and are not reported yet. */
  readonly untold: { added: number | null; freed: number | null; since: Moment; claim: object | null }[] = [];
  measure: { at: number; seen: number[] } | null = null;
  wasDisturbed = false;

  constructor() {
    this.estimate.begin();
    this.estimate.finish(found([]));
  }

  disturb(): void {
    if (this.measure) this.wasDisturbed = true;
  }

  begin(): void {
    this.estimate.begin();
    this.measure = { at: 0, seen: [] };
    this.wasDisturbed = this.untold.length > 0;
  }

  /** Skips a file while its claim is not released, as a measure skips a temporary file. */
  visit(places: number): void {
    const { measure } = this;
    if (!measure || measure.at >= places) return;
    const bytes = this.files.get(measure.at);
    const isClaimed = this.untold.some(({ claim, added }) => claim !== null && added === measure.at);
    if (bytes !== undefined && !isClaimed) measure.seen.push(bytes);
    measure.at++;
  }

  finish(): void {
    if (!this.measure) return;
    this.estimate.finish(found(this.measure.seen));
    this.measure = null;
  }

  write(place: number, bytes: number): void {
    this.disturb();
    const claim = { bytes, entries: 1 };
    const since = this.estimate.moment;
    this.estimate.claim(claim);
    this.writes.push({ place, bytes, since, claim });
  }

  place(): void {
    const write = this.writes.shift();
    if (!write || this.untold.some(({ added }) => added === write.place)) return;
    this.disturb();
    const freed = this.files.get(write.place) ?? null;
    this.files.set(write.place, write.bytes);
    this.untold.push({ added: write.place, freed, since: write.since, claim: write.claim });
  }

  delete(place: number): void {
    const freed = this.files.get(place);
    if (freed === undefined || this.untold.some(({ added }) => added === place)) return;
    this.disturb();
    this.files.delete(place);
    this.untold.push({ added: null, freed, since: this.estimate.moment, claim: null });
  }

  tell(): void {
    const change = this.untold.shift();
    if (!change) return;
    this.disturb();
    const { added, freed, since, claim } = change;
    if (claim) this.estimate.release(claim as Reservation);
    this.estimate.change(
      {
        ...(added === null ? {} : { added: amountOf(this.files.get(added) ?? 0) }),
        ...(freed === null ? {} : { freed: amountOf(freed) }),
      },
      since,
    );
  }

  get bytes(): number {
    return [...this.files.values()].reduce((sum, bytes) => sum + bytes, 0);
  }
}

const PLACES = 4;
const place = fc.nat(PLACES - 1);
const step = fc.oneof(
  fc.record({ does: fc.constantFrom("begin", "visit", "visit", "finish", "place", "tell") }),
  fc.record({ does: fc.constant("write"), place, bytes: fc.integer({ min: 1, max: 100 }) }),
  fc.record({ does: fc.constant("delete"), place }),
) as fc.Arbitrary<{ does: string; place: number; bytes: number }>;

function take(model: Model, { does, place, bytes }: { does: string; place: number; bytes: number }): void {
  if (does === "begin" && !model.measure) model.begin();
  if (does === "visit") model.visit(PLACES);
  if (does === "finish" && model.measure?.at === PLACES) model.finish();
  if (does === "write") model.write(place, bytes);
  if (does === "place") model.place();
  if (does === "delete") model.delete(place);
  if (does === "tell") model.tell();
}

test("for any calls during measures, it is never less than the actual usage", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const model = new Model();
      for (const one of steps) {
        take(model, one);
        expect(model.estimate.bytes).toBeGreaterThanOrEqual(model.bytes);
        expect(model.estimate.entries).toBeGreaterThanOrEqual(model.files.size);
      }
    }),
    { numRuns: 3000 },
  );
});

test("after an undisturbed measure, until the next one starts, it is exact", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.array(step, { maxLength: 20 }), (before, after) => {
      const model = new Model();
      for (const one of before) take(model, one);
      while (model.untold.length > 0) model.tell();
      if (model.measure) model.estimate.giveUp();
      model.begin();
      for (let n = 0; n < PLACES; n++) model.visit(PLACES);
      model.finish();
      // Writes still in progress started before the measure, and cannot tell which of their changes it saw.
      for (const { claim } of model.writes.splice(0)) model.estimate.release(claim);
      for (const one of after) if (one.does !== "begin") take(model, one);
      while (model.untold.length > 0) model.tell();
      for (const { claim } of model.writes.splice(0)) model.estimate.release(claim);
      expect(model.estimate.measured).toMatchObject({ used_bytes: model.bytes, entry_count: model.files.size });
    }),
    { numRuns: 2000 },
  );
});

test("reservations count until released, and calls together admit no more than the limits", () => {
  const claims = fc.array(fc.record({ bytes: fc.nat(50), entries: fc.nat(2) }), { maxLength: 20 });
  fc.assert(
    fc.property(claims, fc.nat(60), fc.nat(6), (requested, bytes, entries) => {
      const limits = { bytes: 100, entries: 10 };
      const estimate = new Estimate();
      estimate.finish(found([], { used_bytes: bytes, entry_count: entries }));
      const admitted = requested.filter((claim) => {
        const verdict = estimate.admits(claim, limits);
        const fits = verdict.bytes === "yes" && verdict.entries === "yes";
        if (fits) estimate.claim(claim);
        return fits;
      });
      expect(estimate.bytes).toBeLessThanOrEqual(limits.bytes);
      expect(estimate.entries).toBeLessThanOrEqual(limits.entries);
      for (const claim of admitted) estimate.release(claim);
      expect([estimate.bytes, estimate.entries]).toEqual([bytes, entries]);
    }),
  );
});

test("an amount possibly counted twice is perhaps admitted: another measure decides", () => {
  const estimate = new Estimate();
  estimate.finish(found([40]));
  estimate.begin();
  estimate.change({ added: amountOf(30) }, estimate.moment);
  // The measure has seen it as well.
  estimate.finish(found([40, 30]));
  expect(estimate.bytes).toBe(100);
  const limits = { bytes: 120, entries: 10 };
  expect(estimate.admits({ bytes: 40, entries: 0 }, limits).bytes).toBe("perhaps");
  expect(estimate.admits({ bytes: 90, entries: 0 }, limits).bytes).toBe("no");
  estimate.begin();
  estimate.finish(found([40, 30]));
  expect(estimate.admits({ bytes: 40, entries: 0 }, limits).bytes).toBe("yes");
});

test("an incomplete measure lowers no known value, and adds its findings", () => {
  const estimate = new Estimate();
  estimate.finish(found([40, 40]));
  estimate.finish(found([10], { is_complete: false }));
  expect(estimate.measured).toMatchObject({ used_bytes: 80, entry_count: 2, is_complete: false });
  estimate.finish(found([10, 10, 10], { is_complete: false }));
  expect(estimate.measured).toMatchObject({ used_bytes: 80, entry_count: 3 });
  estimate.finish(found([10]));
  expect(estimate.measured).toMatchObject({ used_bytes: 10, entry_count: 1, is_complete: true });
});

test("more freed than was known implies writes by guests", () => {
  const estimate = new Estimate();
  estimate.finish(found([10]));
  expect(estimate.change({ freed: amountOf(10) }, estimate.moment)).toBe(true);
  expect(estimate.change({ freed: amountOf(10) }, estimate.moment)).toBe(false);
  expect(estimate.measured).toMatchObject({ used_bytes: 0, entry_count: 0 });
});

/** Transitions between access modes, by the result of a measure. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { GUEST_MAY, MAX_BEYOND, modeAfter } from "../../../../../daemon/domain/drive/quota/over-quota.ts";

const ALLOWANCE = { bytes: 1000, entries: 100, org_bytes_left: 1 };
const UNDER = { used_bytes: 999, file_count: 0, entry_count: 99, is_complete: true, kept_by_kernel: false };
const FAR = { used_bytes: 1000 + MAX_BEYOND.bytes, entry_count: 100 + MAX_BEYOND.entries };
const MODES = ["open", "stopped", "held"] as const;

test("a drive under every limit is open, after any mode", () => {
  for (const mode of MODES) expect(modeAfter(mode, UNDER, ALLOWANCE, UNDER)).toBe("open");
});

test("at a limit it is stopped, and far above it held", () => {
  for (const at of [{ used_bytes: 1000 }, { entry_count: 100 }, { is_complete: false }]) {
    expect(modeAfter("open", { ...UNDER, ...at }, ALLOWANCE, null)).toBe("stopped");
  }
  expect(modeAfter("open", { ...UNDER, used_bytes: FAR.used_bytes }, ALLOWANCE, null)).toBe("held");
  expect(modeAfter("open", { ...UNDER, entry_count: FAR.entry_count }, ALLOWANCE, null)).toBe("held");
});

test("over the organization's plan it is stopped, by any amount, and held only if it grows", () => {
  const allowance = { ...ALLOWANCE, bytes: 2 ** 40, org_bytes_left: -(2 ** 40) };
  const measured = { ...UNDER, used_bytes: 2 ** 30 };
  expect(modeAfter("open", measured, allowance, null)).toBe("stopped");
  expect(modeAfter("stopped", measured, allowance, measured)).toBe("stopped");
  const grown = { ...measured, used_bytes: measured.used_bytes + MAX_BEYOND.bytes };
  expect(modeAfter("stopped", grown, allowance, measured)).toBe("held");
});

test("a drive that cannot be measured because directories are moved is held", () => {
  const moved = { ...UNDER, is_complete: false };
  expect(modeAfter("stopped", moved, ALLOWANCE, UNDER)).toBe("held");
});

test("a drive under a kernel quota is not stopped for its own usage", () => {
  const full = { ...UNDER, ...FAR, kept_by_kernel: true };
  expect(modeAfter("open", full, ALLOWANCE, null)).toBe("open");
  expect(modeAfter("open", full, { ...ALLOWANCE, org_bytes_left: 0 }, null)).toBe("stopped");
});

test("a held drive stays so until it is under its limits", () => {
  const measured = fc.record({
    used_bytes: fc.nat(2 ** 30),
    file_count: fc.nat(10),
    entry_count: fc.nat(20_000),
    is_complete: fc.boolean(),
    kept_by_kernel: fc.constant(false),
  });
  fc.assert(
    fc.property(measured, (found) => {
      const isUnder = found.used_bytes < 1000 && found.entry_count < 100 && found.is_complete;
      expect(modeAfter("held", found, ALLOWANCE, found)).toBe(isUnder ? "open" : "held");
    }),
  );
});

test("the guest's permissions only shrink from mode to mode", () => {
  const ORDER = ["works", "EFBIG", "waits"];
  for (const [call, cells] of Object.entries(GUEST_MAY)) {
    const ranks = MODES.map((mode) => ORDER.indexOf(cells[mode]));
    expect(ranks, call).toEqual(ranks.toSorted());
    expect(cells.held, call).toBe("waits");
  }
});

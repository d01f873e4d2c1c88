/** CIDs that are free on the host are found by trying them, and are not kept. */
import { expect, test } from "vitest";
import { type CidDevice, cidDevice, firstFreeCid } from "../../../../daemon/host/guest-link/transports/host-cids.ts";

/** The kernel's, in which others have some CIDs. */
function deviceWith(
  others: readonly number[],
): CidDevice & { taken: number | null; tried: number[]; open_count: number } {
  const device = {
    taken: null as number | null,
    tried: [] as number[],
    open_count: 0,
    open: () => {
      device.open_count++;
      return 7;
    },
    take: (descriptor: number, cid: number) => {
      expect(descriptor).toBe(7);
      device.tried.push(cid);
      if (others.includes(cid)) return false;
      device.taken = cid;
      return true;
    },
    close: () => {
      device.open_count--;
    },
  };
  return device;
}

test("the first free CID is returned, and is still free afterwards", () => {
  const device = deviceWith([9100, 9101, 9103]);
  expect(firstFreeCid([9100, 9101, 9102, 9103, 9104], device)).toBe(9102);
  expect(device.tried.slice(0, 3)).toEqual([9100, 9101, 9102]);
  // In its place the device has a CID that no sandbox may have.
  expect(device.taken).toBeGreaterThanOrEqual(2 ** 31);
  expect(device.taken).toBeLessThan(2 ** 32 - 1);
  expect(device.open_count).toBe(0);
});

test("if all are taken, or none is given, the result is null", () => {
  const device = deviceWith([9100, 9101]);
  expect(firstFreeCid([9100, 9101], device)).toBeNull();
  expect(firstFreeCid([], device)).toBeNull();
  expect(device.open_count).toBe(0);
});

test("the device is closed after a failed call, and is ignored if it cannot be opened", () => {
  const device = deviceWith([]);
  const broken = {
    ...device,
    take: () => {
      throw new Error("EIO: CID 9100");
    },
  };
  expect(() => firstFreeCid([9100], broken)).toThrow("EIO");
  expect(device.open_count).toBe(0);
  expect(firstFreeCid([9100, 9101], cidDevice("/nowhere/vhost-vsock"))).toBe(9100);
  // A file that is no such device fails.
  expect(() => firstFreeCid([9100], cidDevice("/dev/null"))).toThrow("ENOTTY");
});

/** Preconditions of adopting a guest, checked before the guest is changed. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { makePaths } from "../../../../daemon/core/config/paths.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { adoptGuest, QEMU_ENDED } from "../../../../daemon/host/guest/adopt.ts";
import type { GuestHost, GuestPlan } from "../../../../daemon/host/guest/plan.ts";
import { type ProcessRecord, processOf } from "../../../../daemon/host/process.ts";
import { newId } from "../../../../shared/ids.ts";

const CID = 9100;
const own = processOf(process.pid) as ProcessRecord;

/** Adopts the recorded guest, on a host that has no transport now; resolves with the reason of the failure, and the requested transport. */
async function adopted(record: object | null, hostNow?: () => GuestHost) {
  const home = mkdtempSync("/tmp/roomd-u-");
  const requests: string[] = [];
  const host = {
    transportOf: (kind: string, firstPort: number) => {
      requests.push(`${kind} ${firstPort}`);
      throw new ServiceError("not_ready", { detail: "not now" });
    },
  } as unknown as GuestHost;
  try {
    const paths = makePaths({ data_dir: join(home, "data"), runtime_dir: join(home, "run") }).sandbox(newId("sbx"));
    mkdirSync(dirname(paths.processes), { recursive: true });
    if (record) writeFileSync(paths.processes, JSON.stringify({ guest_cid: CID, qemu: own, ...record }));
    const plan = { guest_cid: CID, paths } as GuestPlan;
    const adopting = adoptGuest(hostNow ?? (() => host), plan, "snapshot", "running", new AbortController().signal);
    const why = await adopting.then(
      () => null,
      (error: unknown) => error,
    );
    return { why, asked: requests };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

test("its vsock is the one it was started with: its own process, or the kernel's", async () => {
  const notNow = expect.objectContaining({ code: "not_ready" });
  expect(await adopted({ vsock: own })).toEqual({ why: notNow, asked: ["vhost-user 1024"] });
  // It need not run any more: then it gets another one.
  expect(await adopted({ vsock: { pid: 1, start_ticks: "0" } })).toEqual({ why: notNow, asked: ["vhost-user 1024"] });
  expect(await adopted({ vsock: null })).toEqual({ why: notNow, asked: ["kernel 1024"] });
});

test("its ports are root's if the host has a secret, and otherwise those that an older agent dials", async () => {
  const secret = "5".repeat(64);
  expect((await adopted({ vsock: null, secret })).asked).toEqual(["kernel 1016"]);
  expect((await adopted({ vsock: own, secret })).asked).toEqual(["vhost-user 1016"]);
  expect((await adopted({ vsock: null, secret: null })).asked).toEqual(["kernel 1024"]);
});

test("a QEMU that has exited ends the guest, even if the host lacks a requirement", async () => {
  const failing = () => {
    throw new ServiceError("not_ready", { detail: "There is no virtiofsd on this host." });
  };
  const ended = expect.objectContaining({ message: QEMU_ENDED });
  expect((await adopted({ qemu: { pid: 1, start_ticks: "0" } }, failing)).why).toEqual(ended);
  expect((await adopted(null, failing)).why).toEqual(ended);
  expect((await adopted({}, failing)).why).toMatchObject({ code: "not_ready" });
});

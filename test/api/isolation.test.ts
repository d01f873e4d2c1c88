/** `roomd doctor` on hosts that cannot give guests' processes separate users: the cause and the remedy. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, TestDaemon } from "../harness/daemon.ts";

const asRoot = process.getuid?.() === 0;
if (!asRoot) console.log("users of guests' processes: some tests are left out, because only root can assign users");

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0" } });
});
afterAll(() => daemon.stop());

async function checkOf(id: string, env: Record<string, string> = {}): Promise<Json> {
  const { stdout } = await daemon.cli(["doctor", "--json"], undefined, env);
  return JSON.parse(stdout).checks.find((check: Json) => check.id === id);
}

describe("the check `isolation`", () => {
  test.skipIf(!asRoot)("fails for IDs that do not form whole ranges", async () => {
    const check = await checkOf("isolation", { ROOMD_ISOLATION_UID_BASE: "1900000000" });
    expect(check).toMatchObject({ status: "fail", message: expect.stringContaining("1900000000") });
    expect(check.remedy).toContain("isolation.uid_base");
  });

  test.skipIf(!asRoot)("fails for IDs that the host does not have", async () => {
    const check = await checkOf("isolation", { ROOMD_ISOLATION_UID_BASE: String(2 ** 32 - 65_536) });
    expect(check).toMatchObject({ status: "fail", message: expect.stringContaining(String(2 ** 32 - 65_536)) });
  });

  test.skipIf(!asRoot)("fails for directories that other users cannot traverse, and names them", async () => {
    const closed = mkdtempSync(join(tmpdir(), "roomd-closed-"));
    try {
      const dirs = { ROOMD_DATA_DIR: join(closed, "data"), ROOMD_RUNTIME_DIR: join(closed, "run") };
      const check = await checkOf("isolation", dirs);
      expect(check).toMatchObject({ status: "fail", message: expect.stringContaining(closed) });
      expect(check.remedy).toContain(`chmod o+x ${closed}`);
      // A template build is refused before it starts, too.
      const built = await daemon.cli(["template", "build", "default", "--verbose"], undefined, dirs);
      expect(built).toMatchObject({ status: 1, stdout: "" });
      expect(built.stderr).toMatch(new RegExp(`^roomd: .* ${closed}\\b.*\\bchmod o\\+x ${closed}`, "s"));
      chmodSync(closed, 0o711);
      expect((await checkOf("isolation", dirs)).status).not.toBe("fail");
    } finally {
      rmSync(closed, { recursive: true });
    }
  });

  test("warns if the operator allowed root", async () => {
    const check = await checkOf("isolation", { ROOMD_ISOLATION_UID_BASE: "0" });
    expect(check).toMatchObject({ status: "warn", message: expect.stringContaining("root") });
  });

  test("prevents guests from starting while it fails", async () => {
    const own = await TestDaemon.start({
      env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0", ROOMD_ISOLATION_UID_BASE: "1900000000" },
    });
    try {
      const health = await own.api("GET", "/health");
      expect([health.status, health.body.ready]).toEqual([503, false]);
      expect(health.body.checks.find(({ id }: Json) => id === "isolation").status).toBe("fail");
    } finally {
      await own.stop();
    }
  });
});

test("the check `confinement` reports what limits sandboxes, or that nothing does", async () => {
  const check = await checkOf("confinement");
  expect(["ok", "warn"]).toContain(check.status);
  expect(check.message).toMatch(/\.$/);
  if (check.status === "warn") expect(check.remedy).toMatch(/\.$/);
});

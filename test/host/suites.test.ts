/**
 * The package on the other supported systems: installed from their archives, upgraded and purged. Takes minutes and a package mirror, so it
 * runs if ROOMD_TEST_LONG is 1.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { until } from "../harness/guests.ts";
import { buildPackage, DATA, INSTALL, PURGE, storyOf } from "./installed.ts";
import { VirtualHost } from "./machine.ts";
import { LEFT_OUT } from "./virtual-host.ts";

const SLOW_MS = 180_000;
const SUITES = ["bookworm", "noble"];
const UBUNTU_KEYS = "/usr/share/keyrings/ubuntu-archive-keyring.gpg";

function whyNot(suite: string): string | null {
  if (LEFT_OUT !== null) return LEFT_OUT;
  if (suite !== "noble") return null;
  if (!existsSync(UBUNTU_KEYS)) return "the keys of Ubuntu's archive are not on this host (package ubuntu-keyring)";
  try {
    // As the image is built: mmdebstrap has the archive's address.
    execFileSync("mmdebstrap", ["--simulate", "--variant=custom", suite, "/dev/null"], {
      stdio: "pipe",
      timeout: 60_000,
    });
    return null;
  } catch {
    return "Ubuntu's archive cannot be reached from here";
  }
}

describe.each(SUITES)("on %s", (suite) => {
  const why = whyNot(suite);
  let host: VirtualHost | undefined;
  if (why !== null) console.log(`the package on ${suite}: left out, because ${why}`);

  afterEach(async ({ task }) => {
    if (task.result?.state === "fail" && host) console.log(await storyOf(host));
  });

  afterAll(() => host?.end());

  test.skipIf(why !== null)(
    "it is installed from the archive's packages, serves, is upgraded and purged",
    async () => {
      host = await VirtualHost.boot(VirtualHost.image(suite), { "roomd.deb": buildPackage() });
      const { ok, run } = { ok: host.ok.bind(host), run: host.run.bind(host) };
      await ok("apt-get update -q", 300_000);
      const output = await ok(`${INSTALL} /payload/roomd.deb`, 1_800_000);
      expect(output).toContain("roomd doctor");
      console.log(`${suite}:\n${(await run("roomd doctor")).text}`);
      await ok("roomd init --json >/root/init.json && systemctl enable --now roomd");
      const answers = async () => (await run("roomd health")).text.includes("topology");
      await until("the service answers", answers, SLOW_MS);
      const started = await ok("systemctl show -p ExecMainStartTimestampMonotonic --value roomd");

      await ok(
        "dpkg-deb -R /payload/roomd.deb /root/next && sed -i 's/^Version: .*/Version: 98/' /root/next/DEBIAN/control && dpkg-deb -Zzstd -z1 -b /root/next /root/next.deb && rm -r /root/next",
      );
      await ok(`${INSTALL} /root/next.deb`, 600_000);
      await until("the service answers", answers, SLOW_MS);
      expect(await ok("systemctl show -p ExecMainStartTimestampMonotonic --value roomd")).not.toBe(started);
      expect((await run("ls -d /usr/lib/roomd/previous")).status).not.toBe(0);

      await ok(PURGE);
      expect(
        await ok(`for name in roomd qemu virtiofsd; do pgrep -l $name; done; ls -A ${DATA} 2>/dev/null || true`),
      ).toBe("");
      expect(await ok("systemctl list-unit-files --no-legend 'roomd*' || true")).toBe("");
    },
    3_600_000,
  );
});

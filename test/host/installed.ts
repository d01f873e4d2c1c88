/** Owns what every test of the installed package begins with: a virtual host with the package, and a template that was saved there. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { VirtualHost } from "./machine.ts";

const TESTS = process.env.ROOMD_TEST_DIR ?? "/var/tmp/roomd-test";
/** What a template is made of, as packaging/check sees it. */
const TEMPLATE_SOURCES = [
  "dist/roomd-agent",
  "packaging/guest-image",
  "daemon/domain/templates",
  "daemon/host/machine",
];
const BUILD_MS = 600_000;

export const DATA = "/var/lib/roomd";
/** As people set it: the key that setup has kept. */
export const WITH_KEY = `. ${DATA}/setup.env; export ROOMD_API_KEY;`;

/** What there is to know of the host and of roomd on it where a test has failed. */
export async function storyOf(host: VirtualHost): Promise<string> {
  const asked = [
    `${WITH_KEY} roomd sandbox list demo --json`,
    `tail -n 20 ${DATA}/sandboxes/*/vmm.log`,
    "journalctl -u roomd --no-pager -o short-precise | tail -n 60; systemd-cgls --no-pager /roomd.slice",
  ];
  for (const command of asked) await host.run(command, 60_000);
  return host.story();
}

/** The package of this checkout. */
export function buildPackage(): string {
  return execFileSync(resolve("packaging/deb"), { encoding: "utf8" }).trimEnd().split("\n").at(-1) ?? "";
}

/**
 * Boots a host that has the package at /payload/roomd.deb, and a disk with project quotas at /var/lib/roomd with a template that was
 * saved under that host's own KVM. The first time it is built there, of the base image that the other tests use.
 */
export async function bootHost(): Promise<VirtualHost> {
  const image = VirtualHost.image();
  const kept = join(image, "data.raw");
  const [key, stamp] = [templateKey(image), join(image, "data.key")];
  const isKept = existsSync(kept) && existsSync(stamp) && readFileSync(stamp, "utf8") === key;
  const payload: Record<string, string> = { "roomd.deb": buildPackage() };
  if (!isKept) payload["template-cache"] = join(TESTS, "data", "template-cache");
  const host = await VirtualHost.boot(image, payload, isKept ? kept : null);
  try {
    if (!isKept) {
      await buildTemplate(host);
      host.keepData(kept);
      writeFileSync(stamp, key);
    }
    await host.ok(`mkdir -p ${DATA} && echo '/dev/vdc ${DATA} xfs prjquota 0 0' >>/etc/fstab && mount ${DATA}`);
    return host;
  } catch (error) {
    console.log(host.story());
    host.end();
    throw error;
  }
}

/** With the binaries of the package, which is not installed; the disk is not mounted afterwards. */
async function buildTemplate(host: VirtualHost): Promise<void> {
  await host.ok("mkfs.xfs -q /dev/vdc && mkdir /mnt/data && mount -o prjquota /dev/vdc /mnt/data");
  await host.ok("cp -a /payload/template-cache /mnt/data/ && dpkg-deb -x /payload/roomd.deb /root/package");
  const where = "ROOMD_DATA_DIR=/mnt/data ROOMD_RUNTIME_DIR=/run/build";
  await host.ok(`${where} /root/package/usr/lib/roomd/roomd template build default --verbose 2>&1`, BUILD_MS);
  await host.ok("cd /mnt/data && ls -A | grep -vx templates | xargs rm -rf && cd / && rm -rf /run/build /root/package");
  await host.ok("umount /mnt/data && rmdir /mnt/data");
}

function templateKey(image: string): string {
  const hash = createHash("sha256").update(readFileSync(join(image, "recipe")));
  for (const source of TEMPLATE_SOURCES.flatMap(filesOf)) hash.update(source).update(readFileSync(source));
  return hash.digest("hex");
}

function filesOf(path: string): string[] {
  if (path.endsWith("-agent")) return [path];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** A virtual host with the package and a template: the first state of every test of the installed package. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join, resolve } from "node:path";
import { until } from "../harness/guests.ts";
import { VirtualHost } from "./machine.ts";

const TESTS = process.env.ROOMD_TEST_DIR ?? "/var/tmp/roomd-test";
/** The sources of a template, as in packaging/check. */
const TEMPLATE_SOURCES = [
  "dist/roomd-agent",
  "packaging/guest-image",
  "daemon/domain/templates",
  "daemon/host/machine",
];
/** Emulated, and with packages to download first if the building roomd has another recipe. */
const BUILD_MS = 1_500_000;
const MAX_TRIES = 5;
const NO_QUESTIONS = "DEBIAN_FRONTEND=noninteractive";

export const INSTALL = `${NO_QUESTIONS} apt-get install -q -y -o Dpkg::Use-Pty=0`;
export const PURGE = `${NO_QUESTIONS} apt-get purge -q -y -o Dpkg::Use-Pty=0 roomd`;

export const DATA = "/var/lib/roomd";
const DROP_INS = "/etc/systemd/system/roomd.service.d";
const PATIENT = "[Service]\\nEnvironment=ROOMD_LIMITS_SANDBOX_START=40m\\n";
/** As people set it: the key that setup has kept. */
export const WITH_KEY = `. ${DATA}/setup.env; export ROOMD_API_KEY;`;

/** Diagnostics of the host and of roomd on it after a failed test. */
export async function storyOf(host: VirtualHost): Promise<string> {
  const commands = [
    `${WITH_KEY} roomd sandbox list demo --json`,
    `tail -n 20 ${DATA}/sandboxes/*/vmm.log ${DATA}/sandboxes/*/console/*`,
    "journalctl -u roomd --no-pager -o short-precise | tail -n 60; systemd-cgls --no-pager /roomd.slice",
  ];
  for (const command of commands) await host.run(command, 60_000);
  return host.story();
}

/** The package of this checkout. */
export function buildPackage(): string {
  return execFileSync(resolve("packaging/deb"), { encoding: "utf8" }).trimEnd().split("\n").at(-1) ?? "";
}

/** The build of a checkout of this commit, as its quickstart installs it: a directory with binaries and unit. Built once. */
export function buildCommit(commit: string): string {
  const built = join(TESTS, `built-${commit}`);
  if (existsSync(join(built, "roomd.service"))) return built;
  const tree = mkdtempSync(join(TESTS, "tree-"));
  try {
    execFileSync("git", ["worktree", "add", "--detach", "--force", tree, commit], { stdio: "pipe" });
    execFileSync(join(tree, "packaging/build"), { stdio: ["ignore", "ignore", "pipe"] });
    mkdirSync(built, { recursive: true });
    const files = ["dist/roomd", "dist/roomd-agent", "packaging/systemd/roomd.service"];
    for (const file of files) copyFileSync(join(tree, file), join(built, basename(file)));
  } finally {
    execFileSync("git", ["worktree", "remove", "--force", tree], { stdio: "pipe" });
  }
  return built;
}

/** The roomd that builds the template of a host's disk, and the command that unpacks it on that host. */
interface Builder {
  /** The kept disk's file. */
  name: string;
  key: string;
  unpack: string;
  roomd: string;
}

/**
 * Boots a host that has the package at /payload/roomd.deb, and a disk with project quotas at /var/lib/roomd with the template of the other
 * tests. That was saved without KVM, so its sandboxes boot: a build and a save on an emulated host take five minutes.
 */
export async function bootHostWithCopiedTemplate(): Promise<VirtualHost> {
  const version = realpathSync(join(TESTS, "data", "templates", "default", "current"));
  const payload = { "roomd.deb": buildPackage(), template: version };
  const host = await VirtualHost.boot(VirtualHost.image(), payload);
  try {
    await host.ok("mkfs.xfs -q /dev/vdc");
    await allowSlowStarts(host);
    await mountData(host);
    const home = `${DATA}/templates/default`;
    const copied = `cp -a /payload/template ${home}/${basename(version)} && ln -s ${basename(version)} ${home}/current`;
    await host.ok(`install -d -m 711 ${DATA} ${DATA}/templates ${home} && ${copied}`);
    return host;
  } catch (error) {
    console.log(host.story());
    host.end();
    throw error;
  }
}

/** For an emulated host, which takes several times as long as a real one. */
const allowSlowStarts = (host: VirtualHost) =>
  host.ok(`mkdir -p ${DROP_INS} && printf '${PATIENT}' >${DROP_INS}/patient.conf`);

/** Mounts the data disk, now and at each boot. */
const mountData = (host: VirtualHost) =>
  host.ok(`mkdir -p ${DATA} && echo '/dev/vdc ${DATA} xfs prjquota 0 0' >>/etc/fstab && mount ${DATA}`);

/**
 * Boots a host that has the package at /payload/roomd.deb, and a disk with project quotas at /var/lib/roomd with a template that was saved
 * under that host's own KVM. The first time it is built there, from the base image that the other tests use. With `before` that commit's
 * roomd has built it, and is in /usr/local/lib/roomd.
 */
export async function bootHost({
  cpu = "max",
  processors = 1,
  memory_mib = 8192,
  before = "",
} = {}): Promise<VirtualHost> {
  const image = VirtualHost.image();
  const payload: Record<string, string> = { "roomd.deb": buildPackage() };
  let builder: Builder = {
    name: "data",
    key: templateKey(image),
    unpack: "dpkg-deb -x /payload/roomd.deb /root/package",
    roomd: "/root/package/usr/lib/roomd/roomd",
  };
  if (before !== "") {
    payload.before = buildCommit(before);
    const to = "/usr/local/lib/roomd";
    const unpack = `mkdir -p ${to} && cp /payload/before/roomd* ${to}/ && ln -sfT /usr/libexec/virtiofsd ${to}/virtiofsd`;
    builder = { name: "before", key: `${recipeOf(image)} ${before}`, unpack, roomd: `${to}/roomd` };
  }
  const kept = join(image, `${builder.name}.raw`);
  const stamp = join(image, `${builder.name}.key`);
  const isKept = existsSync(kept) && existsSync(stamp) && readFileSync(stamp, "utf8") === builder.key;
  if (!isKept) payload.base = newestBase();
  const host = await VirtualHost.boot(image, payload, { data: isKept ? kept : null, cpu, processors, memory_mib });
  try {
    if (before !== "") await host.ok(builder.unpack);
    if (!isKept) {
      await buildTemplate(host, builder);
      // The build's steps with their seconds: they are most of the time that a virtual host takes the first time.
      console.log(host.transcript());
      host.keepData(kept);
      writeFileSync(stamp, builder.key);
    }
    if (before === "") await allowSlowStarts(host);
    await mountData(host);
    return host;
  } catch (error) {
    console.log(host.story());
    host.end();
    throw error;
  }
}

/** The disk is not mounted afterwards. */
async function buildTemplate(host: VirtualHost, { unpack, roomd }: Builder): Promise<void> {
  await host.ok("mkfs.xfs -q /dev/vdc && mkdir /mnt/data && mount -o prjquota /dev/vdc /mnt/data");
  await host.ok(
    `mkdir /mnt/data/template-cache && cp -a /payload/base /mnt/data/template-cache/${basename(newestBase())}`,
  );
  await host.ok(unpack);
  const env = "ROOMD_DATA_DIR=/mnt/data ROOMD_RUNTIME_DIR=/run/build";
  const build = `${env} ${roomd} template build default --verbose 2>&1`;
  // An older roomd sometimes times out on guests as slow as these; its downloads are kept.
  let built = await host.run(build, BUILD_MS);
  for (let tries = 1; built.status !== 0 && tries < MAX_TRIES; tries++) built = await host.run(build, BUILD_MS);
  if (built.status !== 0) throw new Error(`no template was built on the virtual host:\n${built.text.slice(-4000)}`);
  await host.ok("cd /mnt/data && ls -A | grep -vx templates | xargs rm -rf && cd / && rm -rf /run/build /root/package");
  // Processes started by the build may still be ending.
  await until("the disk is unmounted", async () => (await host.run("umount /mnt/data")).status === 0, BUILD_MS);
  await host.ok("rmdir /mnt/data");
}

/** Of the images that the other tests' templates are built of; those of earlier recipes are kept as well. */
function newestBase(): string {
  const cache = join(TESTS, "data", "template-cache");
  const bases = readdirSync(cache).filter((name) => name.startsWith("base-"));
  const newest = bases
    .sort((one, other) => statSync(join(cache, one)).mtimeMs - statSync(join(cache, other)).mtimeMs)
    .at(-1);
  if (newest === undefined) throw new Error(`there is no base image in ${cache}: packaging/check builds one`);
  return join(cache, newest);
}

const recipeOf = (image: string) => readFileSync(join(image, "recipe"), "utf8").trim();

function templateKey(image: string): string {
  const hash = createHash("sha256").update(recipeOf(image));
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

/**
 * Templates that tests build in addition to the shared one: from a recipe in a daemon's own directory, or a cached one that ships with
 * roomd.
 */
import { mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BINARY, SHARED_TEMPLATES, type TestDaemon } from "../daemon.ts";

const SHARED_DATA = dirname(SHARED_TEMPLATES);
const SHARED_CACHE = join(SHARED_DATA, "template-cache");
/** Templates that ship with roomd, apart from the data that only has `default`. */
const KEPT_DATA = join(dirname(SHARED_DATA), "more");

export interface Built {
  status: number;
  stdout: string;
  stderr: string;
}

/** Gives a daemon its own template directory with the shared `default`; downloads made for `default` are reused. */
export function ownTemplates({ dataDir }: TestDaemon): string {
  const own = join(dataDir, "templates");
  rmSync(own);
  mkdirSync(own, { mode: 0o711 });
  symlinkSync(join(SHARED_TEMPLATES, "default"), join(own, "default"));
  symlinkSync(SHARED_CACHE, join(dataDir, "template-cache"));
  return own;
}

/** Builds a recipe for a daemon that has its own template directory. */
export async function buildRecipe(daemon: TestDaemon, name: string, recipe: string): Promise<Built> {
  const file = join(daemon.home, `${name}.toml`);
  writeFileSync(file, recipe);
  return await daemon.cli(["template", "build", name, "--recipe", file, "--json"]);
}

/** Builds a template that ships with roomd, unless an earlier run has, and adds it to a daemon that has its own template directory. */
export async function shippedTemplate(daemon: TestDaemon, name: string): Promise<void> {
  mkdirSync(KEPT_DATA, { recursive: true, mode: 0o711 });
  const env = { ...daemon.env, ROOMD_DATA_DIR: KEPT_DATA, ROOMD_RUNTIME_DIR: join(daemon.home, "build") };
  const key = await keyOf();
  const stamp = Bun.file(join(KEPT_DATA, `${name}.key`));
  if (!(await stamp.exists()) || (await stamp.text()) !== key) {
    const build = Bun.spawn([BINARY, "template", "build", name, "--verbose"], {
      env,
      stdout: "ignore",
      stderr: "pipe",
    });
    const [output, status] = await Promise.all([build.stderr.text(), build.exited]);
    if (status !== 0) throw new Error(`template ${name} was not built:\n${output.slice(-4000)}`);
    await stamp.write(key);
  }
  symlinkSync(join(KEPT_DATA, "templates", name), join(daemon.dataDir, "templates", name));
}

/** Sources and builders of a template; packaging/check has the same list for `default`. */
const MADE_OF = ["packaging/guest-image", "packaging/debian-mirror", "daemon/domain/templates", "daemon/host/machine"];

async function keyOf(): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  const { stdout } = Bun.spawnSync(["qemu-system-x86_64", "--version"]);
  hash.update(stdout);
  const files = MADE_OF.flatMap((path) => filesBelow(join(import.meta.dirname, "../../..", path)));
  for (const file of [`${BINARY}-agent`, ...files]) hash.update(await Bun.file(file).bytes());
  return hash.digest("hex");
}

function filesBelow(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : [])).sort();
}

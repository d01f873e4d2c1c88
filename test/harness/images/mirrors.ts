/** Mirrors for package managers and git in tests, as files that any web server can serve: one tiny package for each. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { crc32 } from "node:zlib";

const MODULE = "module.exports = 42;\n";
const NPM_PROGRAM = "#!/usr/bin/env node\nconsole.log(require('./index.js'));\n";

/** A repository for `git clone URL/tiny.git`, with one file. */
export function writeGitMirror(root: string): void {
  const work = mkdtempSync(join(tmpdir(), "roomd-mirror-"));
  try {
    writeFileSync(join(work, "README"), "tiny\n");
    run(work, "git", "init", "--quiet", "--initial-branch=main");
    run(work, "git", "add", "README");
    run(work, "git", "-c", "user.name=t", "-c", "user.email=t@t.example", "commit", "--quiet", "-m", "first");
    run(work, "git", "clone", "--quiet", "--bare", work, join(root, "tiny.git"));
    run(join(root, "tiny.git"), "git", "update-server-info");
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** A registry for npm with the package `tiny`, which has the program `tiny-npm`. */
export function writeNpmMirror(root: string, url: string): void {
  const directory = join(root, "npm");
  mkdirSync(join(directory, "package"), { recursive: true });
  const manifest = { name: "tiny", version: "1.0.0", main: "index.js", bin: { "tiny-npm": "program.js" } };
  writeFileSync(join(directory, "package/package.json"), JSON.stringify(manifest));
  writeFileSync(join(directory, "package/index.js"), MODULE);
  writeFileSync(join(directory, "package/program.js"), NPM_PROGRAM, { mode: 0o755 });
  run(directory, "tar", "--create", "--gzip", "--file=tiny.tgz", "package");
  const bytes = readFileSync(join(directory, "tiny.tgz"));
  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  const version = { ...manifest, dist: { tarball: `${url}/npm/tiny.tgz`, integrity } };
  const document = { name: "tiny", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } };
  writeFileSync(join(directory, "tiny"), JSON.stringify(document));
}

/** An index for pip with the package `tiny`, which has the program `tiny-pip`. */
export function writePipMirror(root: string): void {
  const directory = join(root, "pip");
  mkdirSync(join(directory, "tiny"), { recursive: true });
  const info = "tiny-1.0.dist-info";
  const wheel = storedZip({
    "tiny.py": "answer = 42\ndef main(): print(answer)\n",
    [`${info}/METADATA`]: "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
    [`${info}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: none\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${info}/entry_points.txt`]: "[console_scripts]\ntiny-pip = tiny:main\n",
    [`${info}/RECORD`]: [
      "tiny.py",
      ...["METADATA", "WHEEL", "entry_points.txt", "RECORD"].map((name) => `${info}/${name}`),
    ]
      .map((path) => `${path},,\n`)
      .join(""),
  });
  const name = "tiny-1.0-py3-none-any.whl";
  writeFileSync(join(directory, name), wheel);
  const digest = createHash("sha256").update(wheel).digest("hex");
  writeFileSync(join(directory, "tiny/index.html"), `<a href="../${name}#sha256=${digest}">${name}</a>\n`);
}

/** An archive for apt with the package `tiny`. */
export function writeAptMirror(root: string): void {
  const directory = join(root, "apt");
  const control = "Package: tiny\nVersion: 1.0\nArchitecture: all\nMaintainer: Test <t@t.example>\nDescription: tiny\n";
  mkdirSync(join(directory, "tree/DEBIAN"), { recursive: true });
  writeFileSync(join(directory, "tree/DEBIAN/control"), control);
  mkdirSync(join(directory, "tree/opt"));
  writeFileSync(join(directory, "tree/opt/tiny"), "42\n");
  const name = "tiny_1.0_all.deb";
  run(directory, "dpkg-deb", "--build", "--root-owner-group", "tree", name);
  const bytes = readFileSync(join(directory, name));
  const digest = createHash("sha256").update(bytes).digest("hex");
  const place = `Filename: ./${name}\nSize: ${bytes.byteLength}\nSHA256: ${digest}\n`;
  writeFileSync(join(directory, "Packages"), `${control}${place}`);
}

/** Packs npm and pip of this host, which are scripts that run in any guest; their names, or why one cannot be had. */
export function packInstallers(root: string): { npm: string; pip: string } | { missing: string } {
  const npm = dirname(
    dirname(realpathSync(spawnSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).stdout.trim())),
  );
  if (!existsSync(join(npm, "node_modules"))) return { missing: "this host's npm is not in one place" };
  const found = spawnSync("python3", ["-c", "import pip; print(pip.__path__[0])"], { encoding: "utf8" });
  if (found.status !== 0) return { missing: "this host has no pip" };
  const archive = (path: string, name: string) => {
    run(dirname(path), "tar", "--create", "--gzip", `--file=${join(root, name)}`, basename(path));
    return name;
  };
  return { npm: archive(npm, "npm.tgz"), pip: archive(found.stdout.trim(), "pip.tgz") };
}

/** A zip archive of files that are not compressed. */
function storedZip(files: Record<string, string>): Buffer {
  const [locals, centrals]: [Buffer[], Buffer[]] = [[], []];
  let offset = 0;
  for (const [path, text] of Object.entries(files)) {
    const [name, bytes] = [Buffer.from(path), Buffer.from(text)];
    // Version, flags, method, time and date, checksum, both sizes, and the name's length.
    const facts = Buffer.alloc(26);
    facts.writeUInt16LE(20, 0);
    facts.writeUInt16LE(0x21, 8);
    facts.writeUInt32LE(crc32(bytes), 10);
    facts.writeUInt32LE(bytes.byteLength, 14);
    facts.writeUInt32LE(bytes.byteLength, 18);
    facts.writeUInt16LE(name.byteLength, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), facts, name, bytes]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    centrals.push(Buffer.concat([Buffer.from("PK\x01\x02"), Buffer.from([20, 0]), facts, rest, name]));
    locals.push(local);
    offset += local.byteLength;
  }
  const central = Buffer.concat(centrals);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(centrals.length, 8);
  end.writeUInt16LE(centrals.length, 10);
  end.writeUInt32LE(central.byteLength, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, central, end]);
}

function run(cwd: string, command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command}: ${stderr || error}`);
}

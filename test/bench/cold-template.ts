/** A copy of the template shared by all tests, with a snapshot that every daemon refuses: its sandboxes boot cold. */
import { mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { SHARED_TEMPLATES } from "../harness/daemon.ts";

const TEMPLATE = "default";
const MANIFEST = "manifest.json";

/** Puts the copy into a data directory. Only the manifest is a separate file; the others are links. */
export function layColdTemplate(dataDir: string): void {
  const shared = realpathSync(join(SHARED_TEMPLATES, TEMPLATE, "current"));
  const home = join(dataDir, "templates", TEMPLATE);
  const version = join(home, basename(shared));
  mkdirSync(version, { recursive: true });
  for (const name of readdirSync(shared)) {
    if (name !== MANIFEST) symlinkSync(join(shared, name), join(version, name));
  }
  const manifest = JSON.parse(readFileSync(join(shared, MANIFEST), "utf8")) as { qemu_version: string };
  // No QEMU loads the saved state of another version.
  writeFileSync(join(version, MANIFEST), JSON.stringify({ ...manifest, qemu_version: `not ${manifest.qemu_version}` }));
  symlinkSync(basename(version), join(home, "current"));
}

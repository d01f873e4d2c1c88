/**
 * Verification of the template that all tests share. A daemon reads the template's files before its first guest, once in a boot of the host;
 * daemons of tests, which have a runtime directory each, hand it on to the next.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface Home {
  dataDir: string;
  runtimeDir: string;
}

/** As a daemon writes it. */
interface Kept {
  boot_id: string;
  looks: Record<string, string>;
}

const KEPT = join(process.env.ROOMD_TEST_DIR ?? "/var/tmp/roomd-test", "verified-templates.json");
const templatesOf = ({ dataDir }: Home) => join(dataDir, "templates", "default", "/");
const fileOf = ({ runtimeDir }: Home) => join(runtimeDir, "verified-templates.json");

/** Gives a daemon the verification of the others, before its first start. */
export function receiveVerified(home: Home): void {
  const kept = readKept(KEPT);
  if (kept) writeFileSync(fileOf(home), JSON.stringify(withPaths(kept, (name) => templatesOf(home) + name)));
}

/** Keeps a daemon's verification of the shared template. */
export function handOnVerified(home: Home): void {
  const verified = readKept(fileOf(home));
  const own = templatesOf(home);
  if (!verified) return;
  const shared = Object.entries(verified.looks).filter(([path]) => path.startsWith(own));
  if (shared.length === 0) return;
  const draft = `${KEPT}.${process.pid}`;
  const kept = { ...verified, looks: Object.fromEntries(shared) };
  writeFileSync(draft, JSON.stringify(withPaths(kept, (path) => path.slice(own.length))));
  renameSync(draft, KEPT);
}

function withPaths({ boot_id, looks }: Kept, rename: (path: string) => string): Kept {
  return { boot_id, looks: Object.fromEntries(Object.entries(looks).map(([path, look]) => [rename(path), look])) };
}

const readKept = (file: string): Kept | null => (existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : null);

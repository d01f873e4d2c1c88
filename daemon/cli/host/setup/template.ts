/** The template in setup: built if it is missing. */
import type { Paths } from "../../../core/config/paths.ts";
import { freeBytes } from "../../../host/files/space.ts";
import { crossedDirectory } from "../../../host/isolation/directories.ts";
import { isLocked } from "../../../host/lock.ts";
import { CliError } from "../../kit/cli-error.ts";
import { buildOnHost } from "../build-on-host.ts";
import { withOperator } from "../operator.ts";
import { untilBuildEnds } from "./running-build.ts";

const TEMPLATE = "default";
/** Disk space for the image, its cache and the snapshot. */
const NEEDS_GIB = 4;

/** Returns the outcome as text. Throws CliError if there is not enough space, and the build's errors. */
export async function provideTemplate(paths: Paths, note: (line: string) => void): Promise<string> {
  const { items, outdated } = await withOperator({}, ({ templates }) => templates.list());
  if (outdated.includes(TEMPLATE)) {
    return `it has the guest agent of an earlier build; \`roomd template build ${TEMPLATE}\` rebuilds it`;
  }
  if (items.some(({ template_id }) => template_id === TEMPLATE)) return "it is there";
  requireSpace(paths.data);
  if (isLocked(paths.build_lock)) {
    // The other build may be of the same template.
    note("another build is running on this host; waiting for its end");
    await untilBuildEnds(paths, note);
    return await provideTemplate(paths, note);
  }
  await buildOnHost({}, { template_id: TEMPLATE }, note);
  return "built";
}

function requireSpace(directory: string): void {
  crossedDirectory(directory);
  const free = Math.floor(freeBytes(directory) / 1024 ** 3);
  if (free >= NEEDS_GIB) return;
  throw new CliError({
    detail: `${free} GiB are free on the file system of ${directory}, and ${NEEDS_GIB} GiB are needed.`,
    errors: [],
    hint: "Free some, then run this again.",
  });
}

/**
 * Order of test files within a group of rings: longest first, so that no worker is left with a long one at the end. Files without a
 * committed duration are ordered by size, largest first. Rings with a shared process are last, one after another: a worker keeps its
 * process only while the next file in the queue is of the same ring.
 */
import { statSync } from "node:fs";
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { committedDurations, SHORT_SECONDS } from "./durations.ts";

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const seconds = committedDurations();
    const lengthOf = ({ project, moduleId }: TestSpecification) =>
      seconds[relative(project.config.root, moduleId)] ?? SHORT_SECONDS;
    const bytesOf = ({ moduleId }: TestSpecification) => statSync(moduleId).size;
    const turnOf = ({ project }: TestSpecification) => project.config.sequence.groupOrder;
    const shared = [...new Set(files.map(({ project }) => project))].filter(({ config }) => config.isolate === false);
    /** Below 0 for a ring with a separate process per file. */
    const sharedOf = ({ project }: TestSpecification) => shared.indexOf(project);
    return files.toSorted(
      (a, b) =>
        turnOf(a) - turnOf(b) || sharedOf(a) - sharedOf(b) || lengthOf(b) - lengthOf(a) || bytesOf(b) - bytesOf(a),
    );
  }
}

/**
 * The order of test files within a group of rings: the longest first, so that no worker is left alone with one at the end. Of files without a
 * committed duration the largest comes first. Rings whose files share a process come last, one after another: a worker keeps its process
 * only as long as the next file in the queue is of the same ring.
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
    /** Below 0 for a ring whose files have a process each. */
    const sharedOf = ({ project }: TestSpecification) => shared.indexOf(project);
    return files.toSorted(
      (a, b) =>
        turnOf(a) - turnOf(b) || sharedOf(a) - sharedOf(b) || lengthOf(b) - lengthOf(a) || bytesOf(b) - bytesOf(a),
    );
  }
}

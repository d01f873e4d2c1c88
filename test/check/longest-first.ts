/**
 * The order of test files within a group of rings: the longest first, so that no worker is left alone with one at the end. Of files without a
 * committed duration the largest comes first.
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
    return files.toSorted((a, b) => turnOf(a) - turnOf(b) || lengthOf(b) - lengthOf(a) || bytesOf(b) - bytesOf(a));
  }
}

/** A vitest reporter of how long each test file took, hooks and imports included, into the file $ROOMD_TEST_DURATIONS. */
import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";
import type { MeasuredFile } from "./durations.ts";

export default class DurationReporter implements Reporter {
  readonly #startedAt = new Map<string, number>();
  readonly #files: MeasuredFile[] = [];

  onTestModuleQueued({ id }: TestModule): void {
    this.#startedAt.set(id, Date.now());
  }

  onTestModuleEnd({ id, moduleId, project }: TestModule): void {
    const startedAt = this.#startedAt.get(id) ?? Date.now();
    const file = relative(project.config.root, moduleId);
    this.#files.push({ file, ring: project.name, startedAt, seconds: (Date.now() - startedAt) / 1000 });
    // After each file, so that a killed run leaves its measurements.
    const path = process.env.ROOMD_TEST_DURATIONS;
    if (path) writeFileSync(path, JSON.stringify(this.#files));
  }
}

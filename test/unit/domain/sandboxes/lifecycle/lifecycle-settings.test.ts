import { expect, test } from "vitest";
import { lifecycleOf } from "../../../../../daemon/domain/sandboxes/lifecycle/lifecycle-settings.ts";

const ALL = ["api", "terminal", "message", "port"];

test.each([
  ["by default everything wakes it", {}, ALL],
  ["with an idle action too", { lifecycle: { on_idle: "hibernate" as const } }, ALL],
  ["a list is exact", { lifecycle: { wake_on: ["port" as const, "port" as const] } }, ["port"]],
  ["nothing wakes it after an empty list", { lifecycle: { wake_on: [] } }, []],
])("%s", (_, input, wake_on) => {
  expect(lifecycleOf(input).wake_on).toEqual(wake_on);
});

test("a change of the idle action leaves the list unchanged", () => {
  const row = { idle_timeout_seconds: null, on_idle: "destroy" as const, wake_on: [] };
  expect(lifecycleOf({ lifecycle: { on_idle: "hibernate" } }, row)).toMatchObject({
    on_idle: "hibernate",
    wake_on: [],
  });
});

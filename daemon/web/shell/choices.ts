/** Owns what somebody chose for this browser: light or dark, and whose time. Its buttons are in the rail, which has no script of its own. */
import { isUtc, showUtc } from "../parts/text.tsx";

const COLOURS = ["system", "light", "dark"] as const;
type Colours = (typeof COLOURS)[number];

const kept = (): Colours => {
  const choice = localStorage.getItem("theme");
  return COLOURS.find((each) => each === choice) ?? "system";
};

function show(colours: Colours): void {
  document.documentElement.dataset.colours = colours;
}

export function startChoices(): void {
  show(kept());
  addChoice(
    () => `Colours: ${kept()}`,
    () => {
      const next = COLOURS[(COLOURS.indexOf(kept()) + 1) % COLOURS.length] ?? "system";
      localStorage.setItem("theme", next);
      show(next);
    },
  );
  addChoice(
    () => `Times: ${isUtc.value ? "UTC" : "local"}`,
    () => showUtc(!isUtc.value),
  );
}

function addChoice(name: () => string, choose: () => void): void {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "link choice-of-browser";
  button.textContent = name();
  button.addEventListener("click", () => {
    choose();
    button.textContent = name();
  });
  document.querySelector("body > nav .foot")?.append(button);
}

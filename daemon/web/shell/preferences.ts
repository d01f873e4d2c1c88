/** Preferences of this browser: light or dark, and the time zone. Its buttons are in the rail, which has no script. */
import { isUtc, showUtc } from "../components/text.tsx";

const COLOURS = ["system", "light", "dark"] as const;
type Colours = (typeof COLOURS)[number];

/** The colours that the daemon has written into the page, from the cookie. */
const kept = (): Colours => COLOURS.find((each) => each === document.documentElement.dataset.colours) ?? "system";

export function startChoices(): void {
  addChoice(
    () => `Colours: ${kept()}`,
    () => {
      const next = COLOURS[(COLOURS.indexOf(kept()) + 1) % COLOURS.length] ?? "system";
      // biome-ignore lint/suspicious/noDocumentCookie: the server reads it for the next page, and not all browsers have a cookie store.
      document.cookie = `roomd-colours=${next}; Path=/; Max-Age=34560000; SameSite=Lax`;
      document.documentElement.dataset.colours = next;
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

"""What the embedders of packages find across languages, and what they cost.

Run ``python -m benchmarks.embedders [NAME …]``. Prints for each how many of the English questions have the answer that
was said in another language as their nearest, among the answers to all of them; how many short texts one core embeds in
a second, one at a time; and what a process takes more with it. Each runs in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import psutil
from rich.console import Console
from rich.table import Table

from memory_app.blas_threads import take_one
from memory_app.providers.embedders import make_embedder

NAMES = ("hash", "wordllama", "minilm", "multilingual")

LANGUAGES = ("en", "de", "es", "fr", "it", "nl", "pt")

QUESTIONS: dict[str, tuple[str, ...]] = {
    "Where does my sister live?": (
        "My sister has a flat in Bremen.",
        "Meine Schwester wohnt in Bremen.",
        "Mi hermana vive en Bremen.",
        "Ma sœur habite à Brême.",
        "Mia sorella abita a Brema.",
        "Mijn zus woont in Bremen.",
        "A minha irmã mora em Bremen.",
    ),
    "What does my brother do for a living?": (
        "My brother is a carpenter.",
        "Mein Bruder arbeitet als Tischler.",
        "Mi hermano trabaja de carpintero.",
        "Mon frère est menuisier.",
        "Mio fratello fa il falegname.",
        "Mijn broer werkt als timmerman.",
        "O meu irmão trabalha como carpinteiro.",
    ),
    "What am I allergic to?": (
        "I can't eat peanuts, I get a rash.",
        "Ich bin allergisch gegen Erdnüsse.",
        "Soy alérgico a los cacahuetes.",
        "Je suis allergique aux cacahuètes.",
        "Sono allergico alle arachidi.",
        "Ik ben allergisch voor pinda's.",
        "Sou alérgico a amendoins.",
    ),
    "Which pet do I have?": (
        "Our old cat sleeps on the radiator.",
        "Wir haben eine alte Katze.",
        "Tenemos un gato viejo.",
        "Nous avons un vieux chat.",
        "Abbiamo un vecchio gatto.",
        "Wij hebben een oude kat.",
        "Temos um gato velho.",
    ),
    "When do I see the dentist?": (
        "I'm having a tooth pulled on Thursday.",
        "Am Donnerstag muss ich zum Zahnarzt.",
        "El jueves tengo cita con el dentista.",
        "Jeudi, j'ai rendez-vous chez le dentiste.",
        "Giovedì devo andare dal dentista.",
        "Donderdag moet ik naar de tandarts.",
        "Na quinta-feira vou ao dentista.",
    ),
    "What do I like to drink in the morning?": (
        "I start the day with black coffee.",
        "Morgens trinke ich schwarzen Kaffee.",
        "Por la mañana tomo café solo.",
        "Le matin, je bois du café noir.",
        "La mattina bevo caffè nero.",
        "'s Ochtends drink ik zwarte koffie.",
        "De manhã bebo café preto.",
    ),
    "How do I get to work?": (
        "I cycle to the office every day.",
        "Ich fahre jeden Tag mit dem Rad ins Büro.",
        "Voy a la oficina en bicicleta todos los días.",
        "Je vais au bureau à vélo tous les jours.",
        "Vado in ufficio in bicicletta ogni giorno.",
        "Ik fiets elke dag naar kantoor.",
        "Vou de bicicleta para o escritório todos os dias.",
    ),
    "Which instrument am I learning?": (
        "I take piano lessons on Mondays.",
        "Ich nehme seit einem Jahr Klavierunterricht.",
        "Llevo un año dando clases de piano.",
        "Je prends des cours de piano depuis un an.",
        "Prendo lezioni di pianoforte da un anno.",
        "Ik heb sinds een jaar pianoles.",
        "Tenho aulas de piano há um ano.",
    ),
    "What is my daughter afraid of?": (
        "Our little girl panics when there is thunder.",
        "Meine Tochter hat Angst vor Gewitter.",
        "A mi hija le dan miedo las tormentas.",
        "Ma fille a peur de l'orage.",
        "Mia figlia ha paura dei temporali.",
        "Mijn dochter is bang voor onweer.",
        "A minha filha tem medo de trovoadas.",
    ),
    "Where did we spend our holidays?": (
        "In August we camped in Norway.",
        "Im August haben wir in Norwegen gezeltet.",
        "En agosto acampamos en Noruega.",
        "En août, nous avons campé en Norvège.",
        "Ad agosto siamo stati in campeggio in Norvegia.",
        "In augustus hebben we in Noorwegen gekampeerd.",
        "Em agosto acampámos na Noruega.",
    ),
    "Why is my back sore?": (
        "I hurt my spine carrying boxes when we moved.",
        "Beim Umzug habe ich mir den Rücken verletzt.",
        "Me lesioné la espalda en la mudanza.",
        "Je me suis blessé au dos en déménageant.",
        "Mi sono fatto male alla schiena durante il trasloco.",
        "Bij de verhuizing heb ik mijn rug bezeerd.",
        "Magoei as costas na mudança.",
    ),
    "What am I saving money for?": (
        "I put something aside each month for a boat.",
        "Ich spare auf ein kleines Segelboot.",
        "Estoy ahorrando para un velero pequeño.",
        "J'économise pour un petit voilier.",
        "Sto risparmiando per una piccola barca a vela.",
        "Ik spaar voor een kleine zeilboot.",
        "Estou a poupar para um pequeno veleiro.",
    ),
}
"""English questions, and what was said: one sentence for each of `LANGUAGES`."""

ROUNDS = 3


def measure(name: str) -> dict[str, float]:
    """The figures of one embedder: hits at one by language, texts a second, megabytes."""
    take_one()
    process = psutil.Process()
    before = process.memory_info().rss
    embedder = make_embedder(name, cache_size=0)
    questions = embedder.embed(list(QUESTIONS))
    figures = {}
    for place, language in enumerate(LANGUAGES):
        answers = embedder.embed([said[place] for said in QUESTIONS.values()])
        nearest = (questions @ answers.T).argmax(axis=1)
        figures[language] = float((nearest == range(len(QUESTIONS))).mean())
    texts = [text for said in QUESTIONS.values() for text in said]
    began = time.process_time()
    for _ in range(ROUNDS):
        embedder.embed(texts)
    figures["texts/s"] = ROUNDS * len(texts) / (time.process_time() - began)
    return figures | {"MB": (process.memory_info().rss - before) / 1e6}


def _measure_apart(name: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.embedders", "--one", name]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, float] = json.loads(answer)
    return figures


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        print(json.dumps(measure(arguments[1])))
        return
    table = Table("embedder", *LANGUAGES, "texts/s", "MB")
    for name in arguments or NAMES:
        figures = _measure_apart(name)
        hits = (f"{figures[language]:.2f}" for language in LANGUAGES)
        table.add_row(name, *hits, f"{figures['texts/s']:.0f}", f"{figures['MB']:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])

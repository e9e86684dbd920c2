"""All recipes of `script/bench models`, by name."""

import model_programs
import zoo_images
import zoo_pictures
import zoo_sequences
import zoo_tables

RECIPES = {
    **model_programs.RECIPES,
    **zoo_images.RECIPES,
    **zoo_pictures.RECIPES,
    **zoo_sequences.RECIPES,
    **zoo_tables.RECIPES,
}
